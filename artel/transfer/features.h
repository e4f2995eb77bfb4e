// Features: outputs of layers of a base for the samples of a data set, as inputs of small models.
//
//   artel::transfer::FeatureRequest request = {.layers = {"avgpool"}};
//   const artel::transfer::Features features = artel::transfer::extract(base, data, request);
//   features.save("features.npz");
//
// The bits of a row do not depend on threads or workers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"
#include "artel/predict/predictor.h"
#include "artel/transfer/base_network.h"
#include "artel/transfer/layer_outputs.h"

namespace artel::transfer {

// The definition of features. Saved with them, so that a model fitted on them can be applied to new
// samples.
struct FeatureRequest {
  std::vector<std::string> layers;  // empty for the input of the head
  Pooling pooling = Pooling::mean;
};

// One part of a data set.
struct FeaturePart {
  std::vector<Tensor> layers;      // one [samples, ...] per layer
  Tensor targets;                  // i32 classes or f32 values; empty if unlabelled
  std::vector<std::string> names;  // of the samples; empty if they are only numbered
  int64_t size() const { return layers.empty() ? 0 : layers.front().shape()[0]; }
};

struct Features {
  std::string base, weights;           // as in BaseSource
  std::vector<std::string> overrides;  // as in BaseSource
  int64_t side = 0;                    // image size; 0 for that of the base
  FeatureRequest request;
  std::vector<std::string> columns;  // names of the joined columns
  std::vector<std::string> class_names;
  int64_t classes = 0;  // 0 if targets are values
  FeaturePart train, test;

  // All layers of a part, concatenated: [samples, numbers].
  static Tensor rows(const FeaturePart& part);

  // Writes NPZ with x_train, y_train, x_test, y_test, and x2_train, ... for further layers,
  // readable by data.set = "npz". The member `recipe` (JSON bytes) holds the FeatureRequest and the
  // base.
  void save(const std::filesystem::path& path) const;
  // Also reads features of other programs: x and y, or x_train and so on. Throws an Error of kind
  // corrupt for other files.
  static Features load(const std::filesystem::path& path);
};

using FeatureProgress = std::function<void(int64_t done, int64_t samples)>;

// Computes layers of a base for samples.
class Extractor {
 public:
  // Throws for an unknown layer and suggests the nearest.
  Extractor(const BaseNetwork& base, const TensorType& sample, FeatureRequest request, int threads);

  const std::vector<std::string>& layers() const { return layers_; }
  // Computes each layer for all samples of a set, reading and preparing samples concurrently. With
  // a group, each rank computes a part, and rank 0 receives all; the others return an empty part.
  FeaturePart operator()(const data::Dataset& set, const data::Augmentation& prepare,
                         comm::Group* group = nullptr, const FeatureProgress& progress = {});
  // Computes each layer for prepared rows.
  std::vector<Tensor> operator()(const Tensor& rows);

 private:
  std::vector<std::string> layers_, outputs_;
  TensorType sample_;
  int threads_;
  Predictor predictor_;
};

// The samples [begin, end) of a set, prepared for the network without random transforms.
Tensor read_rows(const data::Dataset& set, const data::Augmentation& prepare, int64_t begin,
                 int64_t end, ThreadPool& pool);
// The targets of a set; empty if unlabelled.
Tensor read_targets(const data::Dataset& set);

// Features of both parts of the data. The validation part counts as training data.
Features extract(const BaseNetwork& base, const DataConfig& data, const FeatureRequest& request,
                 int threads, comm::Group* group = nullptr, const FeatureProgress& progress = {});

// Adds the columns of a table to the features as another layer. The column `on` holds picture
// names, with or without folders. Without `on`, rows are matched by order: training samples first,
// then test samples. Columns of words are one-hot encoded. Throws for samples missing from the
// table.
void join_columns(Features& features, const std::filesystem::path& table, const std::string& on);

}  // namespace artel::transfer
