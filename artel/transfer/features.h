// Features: what layers inside a base compute for the samples of a data set, for smaller models.
//
//   artel::transfer::FeatureRequest request = {.layers = {"avgpool"}};
//   const artel::transfer::Features features = artel::transfer::extract(base, data, request);
//   features.save("features.npz");
//
// The bits of a row depend on neither threads nor workers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/predict/predictor.h"
#include "artel/transfer/base_network.h"
#include "artel/transfer/layer_outputs.h"

namespace artel::transfer {

// How features come from samples; saved with them, so that a model made of them can be used on new
// samples.
struct FeatureRequest {
  std::vector<std::string> layers;  // empty: what the head is given
  Pooling pooling = Pooling::mean;
};

// One part of a data set.
struct FeaturePart {
  std::vector<Tensor> layers;      // for each layer [samples, ...]
  Tensor targets;                  // i32 classes or f32 values; empty without them
  std::vector<std::string> names;  // of the samples; none: they have numbers
  int64_t size() const { return layers.empty() ? 0 : layers.front().shape()[0]; }
};

struct Features {
  std::string base, weights;           // as BaseSource names them
  std::vector<std::string> overrides;  // likewise
  int64_t side = 0;                    // of the images; 0: the base's
  FeatureRequest request;
  std::vector<std::string> columns;  // that were joined on, names of numbers
  std::vector<std::string> class_names;
  int64_t classes = 0;  // 0: targets are values
  FeaturePart train, test;

  // All layers of a part side by side: [samples, numbers].
  static Tensor rows(const FeaturePart& part);

  // NPZ with x_train, y_train, x_test, y_test, and x2_train, ... for further layers, as data.set =
  // "npz" reads them, too; how they were made is in the bytes of `recipe` (JSON).
  void save(const std::filesystem::path& path) const;
  // Throws an Error of kind corrupt for a file that is not one of these; features of other programs
  // need x and y, or x_train and so on.
  static Features load(const std::filesystem::path& path);
};

using FeatureProgress = std::function<void(int64_t done, int64_t samples)>;

// Computes layers of a base for samples.
class Extractor {
 public:
  // Throws for a layer that does not exist, naming the nearest.
  Extractor(const BaseNetwork& base, const TensorType& sample, FeatureRequest request, int threads);

  const std::vector<std::string>& layers() const { return layers_; }
  // For each layer the values of all samples of a set, which is read and prepared meanwhile. With a
  // group each rank computes a part, and rank 0 gets all; the others get nothing.
  FeaturePart operator()(const data::Dataset& set, const data::Augmentation& prepare,
                         comm::Group* group = nullptr, const FeatureProgress& progress = {});
  // For rows that are prepared already.
  std::vector<Tensor> operator()(const Tensor& rows);

 private:
  std::vector<std::string> layers_, outputs_;
  TensorType sample_;
  int threads_;
  Predictor predictor_;
};

// The samples of a set as the network sees them, [begin, end) of them; what is random is left out.
Tensor read_rows(const data::Dataset& set, const data::Augmentation& prepare, int64_t begin,
                 int64_t end, ThreadPool& pool);
// Their targets; empty if they have none.
Tensor read_targets(const data::Dataset& set);

// Both parts of the data; what the data holds out for validation counts as training data.
Features extract(const BaseNetwork& base, const DataConfig& data, const FeatureRequest& request,
                 int threads, comm::Group* group = nullptr, const FeatureProgress& progress = {});

// Adds numbers of a table to each sample's features, as one more layer. Rows belong to samples by
// the column `on`, which holds the names of the pictures (with or without their folders), or
// without that by their order: training samples first, then those of the test part. Columns of
// words become one number for each word. Throws for samples that the table does not have.
void join_columns(Features& features, const std::filesystem::path& table, const std::string& on);

}  // namespace artel::transfer
