// Small models on the features of a frozen base.
//
//   artel::transfer::SmallModel model = artel::transfer::fit_small("linear", features, {});
//   const artel::Tensor scores = model.scores(rows);  // [samples, classes]
//   model.save("models/flowers");
//
// Features are standardised by the training samples.
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
  // linear: candidate penalties. Empty means 1e-6 to 1 in powers of ten.
  std::vector<double> l2 = {};
  // knn: candidate numbers of neighbours. Empty means 1, 3, 5, 9, 15, 25.
  std::vector<int64_t> neighbours = {};
  int folds = 5;  // folds of the cross-validation that chooses among them
  // linear: relative improvement of the loss at which a fit stops.
  double least_gain = 1e-7;
};

// The held-out score of a candidate.
struct Tried {
  double choice = 0;  // l2, or neighbours
  double accuracy = 0;
  double loss = 0;  // linear: cross entropy or mean squared error
};

struct SmallModel {
  std::string kind;  // "linear", "knn", "centroid"
  double choice = 0;
  std::vector<Tried> tried = {};
  // The definition of its features, without samples.
  Features made = {};
  Tensor means, scales;  // standardisation of the features: (x - mean) * scale
  // linear: weights [classes, numbers] and bias [classes]. centroid: class means [classes, numbers]
  // and a factor of squared distances. knn: rows of training samples and their classes.
  Tensor weights, more;
  std::shared_ptr<const VectorIndex> index = {};  // knn: index of the rows
  double target_mean = 0, target_scale = 1;       // for regression

  // Scores of rows [samples, numbers]: log-probabilities of the classes up to a constant per row,
  // or values [samples, 1].
  Tensor scores(const Tensor& rows, int threads = 1) const;

  // Writes a folder with model.json and model.npz.
  void save(const std::filesystem::path& folder) const;
  static SmallModel load(const std::filesystem::path& folder);
};

// True if the folder holds a saved SmallModel.
bool is_small_model(const std::filesystem::path& folder);

// Throws for an unknown kind, features without targets, a single class, and `knn` or `centroid` for
// values.
SmallModel fit_small(const std::string& kind, const Features& features,
                     const SmallModelOptions& options);

struct SmallScore {
  double accuracy = 0;  // only for classes
  double loss = 0;      // cross entropy or mean squared error
  int64_t samples = 0;
};
SmallScore judge(const SmallModel& model, const FeaturePart& part, int threads = 1);

}  // namespace artel::transfer
