// Small models on features: what a frozen base leaves to be learnt.
//
//   artel::transfer::SmallModel model = artel::transfer::fit_small("linear", features, {});
//   const artel::Tensor scores = model.scores(rows);  // [samples, classes]
//   model.save("models/flowers");
//
// Features are scaled to mean 0 and deviation 1 first, by the training samples.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "artel/transfer/features.h"
#include "artel/transfer/vector_index.h"

namespace artel::transfer {

struct SmallModelOptions {
  int threads = 1;
  uint64_t seed = 0;
  // linear: the weights of the penalty to choose from; empty: 1e-6 to 1, in steps of ten.
  std::vector<double> l2 = {};
  // knn: the numbers of neighbours to choose from; empty: 1, 3, 5, 9, 15, 25.
  std::vector<int64_t> neighbours = {};
  int folds = 5;  // of the cross-validation by which they are chosen
  // linear: the share of the loss that the last step of a fit gains at most.
  double least_gain = 1e-7;
};

// What a choice scored on samples that were held out.
struct Tried {
  double choice = 0;  // l2, or neighbours
  double accuracy = 0;
  double loss = 0;  // linear: cross entropy, or the mean square of errors
};

struct SmallModel {
  std::string kind;  // "linear", "knn", "centroid"
  double choice = 0;
  std::vector<Tried> tried = {};
  // How its features were made; the samples themselves are left out.
  Features made = {};
  Tensor means, scales;  // of the features: (x - mean) * scale
  // linear: [classes, numbers] and [classes]; centroid: [classes, numbers] and one number, by which
  // squared distances are multiplied; knn: rows of training samples and their classes.
  Tensor weights, more;
  std::shared_ptr<const VectorIndex> index = {};  // knn: of the rows
  double target_mean = 0, target_scale = 1;       // of values

  // For rows [samples, numbers]: for each class the logarithm of its probability, up to a number
  // that is the same for all of a row; or [samples, 1] values.
  Tensor scores(const Tensor& rows, int threads = 1) const;

  // A folder with model.json and model.npz.
  void save(const std::filesystem::path& folder) const;
  static SmallModel load(const std::filesystem::path& folder);
};

// Whether a folder is one of these.
bool is_small_model(const std::filesystem::path& folder);

// Throws for an unknown kind, for features without targets, for one class only, and for `knn` and
// `centroid` of values.
SmallModel fit_small(const std::string& kind, const Features& features,
                     const SmallModelOptions& options);

struct SmallScore {
  double accuracy = 0;  // of classes
  double loss = 0;      // cross entropy, or the mean square of errors
  int64_t samples = 0;
};
SmallScore judge(const SmallModel& model, const FeaturePart& part, int threads = 1);

}  // namespace artel::transfer
