// A model: a network, and how its output is judged.
//
//   const artel::Model linear =
//       artel::nn::sequential({artel::nn::flatten(), artel::nn::dense(10)});
//   const artel::ModelGraph graph =
//       artel::inference_graph(linear, {artel::DType::f32, {1, 1, 28, 28}});
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "artel/graph/ops/shards.h"
#include "artel/nn/layer.h"
#include "artel/nn/loss.h"
#include "artel/nn/metric.h"

namespace artel {

class Model {
 public:
  Model(nn::Layer network) : network_(std::move(network)) {}  // NOLINT: a layer is a model

  const nn::Layer& network() const { return network_; }

 private:
  nn::Layer network_;
};

// A graph made from a model, with the initial values of its parameters and states.
struct ModelGraph {
  Graph graph;
  std::map<std::string, nn::Initialiser> initialisers;
};

// Input "x", output "prediction"; dropout off, batch norm by its running statistics. With shards,
// here and below, layers are cut into them (graph/passes/split_layers.h).
ModelGraph inference_graph(const Model& model, const TensorType& x, const ShardPart& part = {});
// The graph for a text that is read piece by piece. Inputs: "x", i32 [1, tokens], and "places", i32
// [tokens], counted from 0. "prediction" [1, 1, vocabulary] is for the last token. The states whose
// names satisfy is_cache keep the keys and values of all tokens read so far.
ModelGraph decoding_graph(const Model& model, int64_t tokens);
bool is_cache(std::string_view state);
// Adds the input "y", the outputs "loss" and, if its rows do not count equally, "loss_weight" (the
// two parts of a WeightedMean), and one for each metric (Metrics::output_of).
ModelGraph evaluation_graph(const Model& model, const TensorType& x, const TensorType& y,
                            const Loss& loss, const std::vector<Metric>& metrics = {},
                            const ShardPart& part = {});
// Inputs "x", "y" and the scalar "weight", by which the loss is multiplied before it is
// differentiated (the share of this lane in the global batch). Outputs as above, without this
// factor, and the gradients of all parameters for which `trained` holds.
// `lanes` is the largest number of lanes with this graph that run together. Without a value of
// `recompute_batch_norms`, they are recomputed if they need much memory (NormRecomputation).
// Throws for a batch norm that sees one value for each channel.
ModelGraph training_graph(const Model& model, const TensorType& x, const TensorType& y,
                          const Loss& loss,
                          const std::function<bool(const std::string&)>& trained = {},
                          const std::vector<Metric>& metrics = {}, const ShardPart& part = {},
                          int lanes = 1, std::optional<bool> recompute_batch_norms = {});

// True if training normalises samples by statistics of their batch (batch norm), which is a lane.
bool uses_batch_statistics(const Model& model, const TensorType& sample,
                           const std::function<bool(const std::string&)>& trained = {});

}  // namespace artel
