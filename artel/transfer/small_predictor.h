// Applies a small model to new samples. Pictures and texts pass through its base first.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "artel/transfer/small_model.h"

namespace artel::transfer {

class SmallPredictor {
 public:
  // Opens the base on first use. Not thread safe.
  SmallPredictor(const std::filesystem::path& folder, int threads);

  const SmallModel& model() const { return model_; }
  // Class names, for displaying predictions.
  const data::SampleLayout& layout() const { return layout_; }

  // Scores (SmallModel::scores) for the samples of a file: a picture, an NPY file of feature rows,
  // or an NPZ file of `artel features` (its test part or, without one, its training part). Throws
  // for other files.
  Tensor scores_of(const std::filesystem::path& file);
  // Scores for a text, or for a pair of texts if `second` is given.
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
