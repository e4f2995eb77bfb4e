// A small model on features, used on new samples: pictures and texts go through its base first.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "artel/transfer/small_model.h"

namespace artel::transfer {

class SmallPredictor {
 public:
  // The base is opened once it is needed.
  SmallPredictor(const std::filesystem::path& folder, int threads);

  const SmallModel& model() const { return model_; }
  // Names of classes, for whoever shows predictions.
  const data::SampleLayout& layout() const { return layout_; }

  // Scores for the samples of a file (SmallModel::scores): a picture, or features (NPY: rows; NPZ
  // of `artel features`: its test part or, without one, its training part). Throws for others.
  Tensor scores_of(const std::filesystem::path& file);
  // For a text or, with a second one, a pair.
  Tensor scores_of_text(const std::string& text, const std::optional<std::string>& second);

 private:
  Tensor scores_of_rows(const Tensor& prepared);
  void open_base_once();

  std::string where_;
  int threads_;
  SmallModel model_;
  data::SampleLayout layout_, texts_;
  std::unique_ptr<BaseNetwork> base_;
  std::unique_ptr<Extractor> extractor_;
  data::Augmentation prepare_;
};

}  // namespace artel::transfer
