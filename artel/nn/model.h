// A model: a network, and how its output is judged.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "artel/nn/layer.h"

namespace artel {

// The loss of a prediction against a target, a scalar: the mean over the batch.
using Loss = std::function<Value(Value prediction, Value target)>;
// cross_entropy, mse, l1, smooth_l1, binary_cross_entropy, kl, by name; throws for others.
Loss loss_by_name(const std::string& name, double label_smoothing = 0);

class Model {
 public:
  Model(nn::Layer network) : network_(std::move(network)) {}  // NOLINT: a layer is a model

  const nn::Layer& network() const { return network_; }

 private:
  nn::Layer network_;
};

// A graph made from a model, with what its parameters and states begin as.
struct ModelGraph {
  Graph graph;
  std::map<std::string, nn::Initialiser> initialisers;
};

// Input "x", output "prediction"; dropout off, batch norm by its running statistics.
ModelGraph inference_graph(const Model& model, const TensorType& x);
// The same for a text that is read piece by piece: inputs "x", i32 [1, tokens], and "places", i32
// [tokens], from 0 on; "prediction" [1, 1, vocabulary] is that of the last token. States whose
// names is_cache knows keep the keys and values of all tokens read so far.
ModelGraph decoding_graph(const Model& model, int64_t tokens);
bool is_cache(std::string_view state);
// Adds the input "y" and the output "loss".
ModelGraph evaluation_graph(const Model& model, const TensorType& x, const TensorType& y,
                            const Loss& loss);
// Inputs "x", "y" and the scalar "weight", by which the loss is multiplied before it is
// differentiated (the share of this lane in the global batch). Outputs "loss" (unweighted) and
// "prediction", and the gradients of all parameters for which `trained` holds. Throws for a batch
// norm that sees one value for each channel.
ModelGraph training_graph(const Model& model, const TensorType& x, const TensorType& y,
                          const Loss& loss,
                          const std::function<bool(const std::string&)>& trained = {});

}  // namespace artel
