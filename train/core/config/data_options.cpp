// SPDX-License-Identifier: Apache-2.0
// The rows of the options of data: which samples a run trains on, and how it reads, changes and assigns them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/augment/augmentation.h"
#include "data/datasets/open_dataset.h"
#include "train/core/config/augment_option.h"
#include "train/core/config/option_rows.h"
#include "train/core/config/presets.h"

namespace gradring::train::option_rows {
namespace {

constexpr std::int64_t kLargestImage = 4096;

TrainOption preset_option() {
  return option(
      "preset", fmt::format("NAME|{}", kListPresets),
      "options that reach a stated accuracy, which all other options override: " +
          fmt::format("{}; {}: list with the figures", fmt::join(preset_names(), ", "), kListPresets),
      &TrainConfig::preset,
      [](std::string_view, std::string_view given) {
        if (!given.empty()) preset_text(given);
        return std::string(given);
      },
      quoted);
}

TrainOption augment_option() {
  return option("augment", "none|LIST",
                "random changes of the training images, separated by commas: crop=PAD, resized-crop[=MIN:MAX], flip, "
                "flip=alternating, mixup=ALPHA, cutmix=ALPHA, cutout=SIZE (docs/augmentation.md); evaluations see the "
                "images as they are",
                &TrainConfig::augment, parse_augment,
                [](const data::Augmentation& augment) { return quoted(data::text_of(augment)); });
}

}  // namespace

Options data_options() {
  return {
      preset_option(),
      changing(Changes::training,
               resumed(OnResume::must_fit_within_epoch,
                       word_option("dataset",
                                   "training and test set; digits is generated in memory; folder: images in "
                                   "train/CLASS/ and test/CLASS/ or val/CLASS/ below --data-dir",
                                   data::dataset_names(), &TrainConfig::dataset))),
      text_option("data-dir", "DIR",
                  "folder with the files of the dataset; all ranks must have the same samples, in any folder",
                  &TrainConfig::data_dir),
      changing(
          Changes::training,
          resumed(OnResume::must_fit, integer_option("image-size", "height and width of the samples of an image folder",
                                                     {.least = 1, .most = kLargestImage}, &TrainConfig::image_size))),
      changing(Changes::training,
               integer_option("resize",
                              "shorter side of the images of a folder before the middle of --image-size is cut out; 0: "
                              "--image-size",
                              {.least = 0, .most = kLargestImage}, &TrainConfig::resize)),
      changing(Changes::training,
               choice_option<OnBroken>("broken",
                                       "response to images of a folder that cannot be read; fail: an error that names "
                                       "them; skip: left out, and named on stderr; a training names all in "
                                       "logs/rank_0.log",
                                       &TrainConfig::on_broken)),
      changing(Changes::training,
               resumed(OnResume::must_fit,
                       option("normalize", std::string(kNormalizeValue),
                              "mean and standard deviation that normalize pixels from 0 to 1; half: 0.5 and 0.5; "
                              "dataset: of each channel of the training set; auto: dataset for your own data, else "
                              "half",
                              &TrainConfig::normalize, parse_normalize,
                              [](const NormalizeOption& value) { return quoted(show_normalize(value)); }))),
      changing(Changes::training,
               resumed(OnResume::must_fit,
                       option("val-split", "F|N",
                              "validation set held out of the training set at random (by --seed): a fraction below 1, "
                              "or a number of "
                              "samples; it is evaluated instead of the test set, which is kept for the end; 0: none",
                              &TrainConfig::val_split, parse_val_split, show_val_split))),
      changing(Changes::training,
               resumed(OnResume::must_fit,
                       choice_option<Stratify>("stratify",
                                               "whether --val-split holds out the same share of every class; off: as "
                                               "PyTorch's random_split; auto: on for your own data, else off",
                                               &TrainConfig::stratify))),
      changing(Changes::training, augment_option()),
      choice_option<Sampler>(
          "sampler",
          "assignment of samples to ranks; distributed: as PyTorch's DistributedSampler, which may repeat some; "
          "sharded: each once an epoch, in whole shards; balanced: all classes equally often, so that samples of "
          "small ones come several times an epoch; auto: sharded with --reproducible, else distributed",
          &TrainConfig::sampler),
      changing(Changes::rounding,
               integer_option("shard-size", "samples per shard with --sampler sharded; 0: --batch-size", {.least = 0},
                              &TrainConfig::shard_size)),
  };
}

}  // namespace gradring::train::option_rows
