// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::simt {

/// The indices begin, begin + stride, ... below end, for a range-based for loop.
template <class Index>
class Range {
 public:
  class Iterator {
   public:
    __host__ __device__ Iterator(Index at, Index stride) : at_(at), stride_(stride) {}
    __host__ __device__ Index operator*() const { return at_; }
    __host__ __device__ Iterator& operator++() {
      at_ += stride_;
      return *this;
    }
    __host__ __device__ bool operator!=(const Iterator& end) const { return at_ < end.at_; }

   private:
    Index at_, stride_;
  };

  __host__ __device__ Range(Index begin, Index end, Index stride) : begin_(begin), end_(end), stride_(stride) {}
  __host__ __device__ Iterator begin() const { return {begin_, stride_}; }
  __host__ __device__ Iterator end() const { return {end_, stride_}; }

 private:
  Index begin_, end_, stride_;
};

}  // namespace gradring::simt
