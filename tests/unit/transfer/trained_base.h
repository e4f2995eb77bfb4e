// A small network trained on spots of light, for tests that need a base.
#pragma once

#include <filesystem>
#include <string>

#include "artel/base/random.h"
#include "artel/data/sets.h"
#include "artel/run/run.h"

namespace artel::transfer {

// Images [1, 12, 12] with a spot in one of `classes` places. `darker` ones have the spot dark.
inline data::DatasetPtr spots(int64_t samples, int64_t classes, bool darker, uint64_t seed) {
  Tensor images({samples, 1, 12, 12}), labels({samples}, DType::i32);
  for (int64_t i = 0; i < samples; ++i) {
    Random random{seed, static_cast<uint64_t>(i)};
    const auto label = static_cast<int64_t>(random.below(static_cast<uint64_t>(classes)));
    labels.values<int32_t>()[i] = static_cast<int32_t>(label);
    float* const pixels = images.values<float>().data() + i * 144;
    for (int64_t p = 0; p < 144; ++p) pixels[p] = 0.5f + 0.1f * random.normal();
    const int64_t top = label % 2 * 6, left = label / 2 * 6;
    for (int64_t y = top + 1; y < top + 5; ++y)
      for (int64_t x = left + 1; x < left + 5; ++x) pixels[y * 12 + x] += darker ? -0.5f : 0.5f;
  }
  std::vector<std::string> names;
  for (int64_t c = 0; c < classes; ++c)
    names.push_back((darker ? "dark" : "light") + std::to_string(c));
  return data::tensor_dataset(images, labels, classes, names);
}

// The sets "light spots" (4 classes) and "dark spots" (3 classes), known once.
inline void know_spots() {
  static const bool once = [] {
    data::register_dataset("light_spots", [](const data::OpenOptions&) {
      return data::Split{spots(256, 4, false, 1), spots(64, 4, false, 2)};
    });
    data::register_dataset("dark_spots", [](const data::OpenOptions&) {
      return data::Split{spots(200, 3, true, 3), spots(90, 3, true, 4)};
    });
    return true;
  }();
  (void)once;
}

// The folder of a run that tells light spots apart; removed at the end.
class TrainedBase {
 public:
  explicit TrainedBase(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / ("artel_transfer_" + name)) {
    know_spots();
    std::filesystem::remove_all(folder_);
    RunConfig config;
    config.data.set = "light_spots";
    config.model.layers = {"conv 8 3x3", "batch_norm", "relu",    "max_pool 2",
                           "conv 8 3x3", "relu",       "flatten", "dense 4"};
    config.train.optimizer = {{"name", "adam"}, {"lr", "0.01"}};
    config.train.epochs = 3;
    config.cluster.lanes = 2;
    Run(config, {.out = (folder_ / "base").string(), .quiet = true}).train();
  }
  ~TrainedBase() { std::filesystem::remove_all(folder_); }
  TrainedBase(const TrainedBase&) = delete;
  TrainedBase& operator=(const TrainedBase&) = delete;

  std::string base() const { return (folder_ / "base").string(); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace artel::transfer
