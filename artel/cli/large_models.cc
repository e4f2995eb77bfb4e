#include "artel/cli/large_models.h"

#include <fmt/format.h>

namespace artel::cli {
namespace {

// Table 2.1 of Brown et al. (2020); batches in tokens, divided by the context of 2,048.
LargeModel gpt3(const std::string& suffix, int depth, int width, int heads, int samples) {
  return {"gpt3" + suffix,
          "gpt2",
          "2048",
          {fmt::format("model.depth={}", depth), fmt::format("model.width={}", width),
           fmt::format("model.heads={}", heads), "model.positions=2048",
           fmt::format("train.batch_size={}", samples), "train.optimizer=adamw"}};
}

const std::vector<LargeModel>& large_models() {
  static const std::vector<LargeModel> models = {
      gpt3("", 96, 12288, 96, 1536),
      gpt3("_13b", 40, 5120, 40, 1024),
      gpt3("_6.7b", 32, 4096, 32, 1024),
      gpt3("_2.7b", 32, 2560, 32, 512),
  };
  return models;
}

}  // namespace

const LargeModel* find_large_model(const std::string& name) {
  for (const LargeModel& model : large_models())
    if (model.name == name) return &model;
  return nullptr;
}

std::vector<std::string> large_model_names() {
  std::vector<std::string> names;
  for (const LargeModel& model : large_models()) names.push_back(model.name);
  return names;
}

}  // namespace artel::cli
