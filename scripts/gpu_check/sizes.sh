# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2054,SC2154
# For gpu_check.sh: on which device the checks run and how much they compute; the rest is the same on a simulated GPU.

# The last batch of MNIST's 60,000 images has 2,189, that of the 160 generated ones 7.
tail_batch=4447
[[ -z $simulated ]] || tail_batch=51

# Kernels at shapes that divide by nothing, as OPERATION:EXTENT=N,...
odd_shapes=(
  conv2d:batch=3,height=13,width=11,in=5,out=7 conv2d:batch=1,height=9,width=9,in=8,out=24
  grouped_conv2d:batch=3,height=13,width=11,channels=5
  grouped_conv2d:batch=1,height=9,width=9,channels=18,filters=30,groups=3,stride=2
  conv_relu_pool:batch=3,height=13,width=11,in=5,out=7
  gemm:batch=33,in=17,out=65 gemm:batch=1,in=40,out=129 gemm:batch=72,in=200,out=136 gemm:batch=8,in=8,out=8
  relu:elements=1001 gelu:elements=1001 silu:elements=1001 dropout:batch=3,elements=1001
  max_pool2d:batch=3,height=9,width=7,channels=5 max_pool2d:batch=3,height=9,width=7,channels=5,window=3,padding=1
  avg_pool2d:batch=3,height=9,width=7,channels=5,window=3,padding=1 batch_norm:rows=1001,channels=5
  muon:elements=1001
)

if [[ -z $simulated ]]; then
  odd_shapes+=(gemm:batch=200,in=1000,out=72 gemm:batch=1024,in=2048,out=1024)
  on_gpu=(--device cuda) on_first_gpu=(--device cuda:0) shared=(--device cuda:0 --allow-shared-gpu)
  batch=64 batch_of_rank=32 steps=100 window_steps=50 rank_steps=40 replica_steps=10
  fault_steps=200 fault_step=20 patience=30s fault_patience=10s
  models=(convnet-deep lenet5 resnet18 resnet18-cifar airbench94)
else
  odd_shapes+=(gemm:batch=200,in=264,out=72)
  on_gpu=(--device cuda --simulate-gpu "$simulated_card")
  on_first_gpu=("${on_gpu[@]}") shared=("${on_gpu[@]}") # a GPU for each rank: processes do not share a simulated one
  batch=8 batch_of_rank=4 steps=4 window_steps=4 rank_steps=4 replica_steps=2
  fault_steps=8 fault_step=3 patience=120s fault_patience=20s
  models=(lenet5)
fi

# The data, the least accuracy after two epochs, and the most points between two precisions: of the digits' 2,000 test samples
# one is 0.05 points, of MNIST's 10,000 a fifth of that.
if [[ -n $data ]]; then
  dataset=(--dataset mnist --data-dir "$data") least_accuracy=0.975 most_points=0.5
else
  dataset=(--dataset digits) least_accuracy=0.95 most_points=1.5
fi
[[ -z $simulated ]] || dataset=(--dataset mnist --data-dir "$work/images")
