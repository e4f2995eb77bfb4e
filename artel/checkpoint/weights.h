// Weights in any supported format, and their match with a model.
//
//   trainer.build({artel::DType::f32, {1, 28, 28}});
//   trainer.load_weights(artel::checkpoint::load_weights("model.safetensors"));
//   artel::checkpoint::save_weights("copy.npz", trainer.weights());
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// The tensors of a safetensors, PyTorch (zip or legacy), NPZ, NPY, HDF5, or GGUF file, recognised
// by content. Quantised tensors of GGUF are dequantised. From a PyTorch checkpoint, takes the entry
// "state_dict", "model_state_dict", or "model" and drops the prefix "module." of a parallel
// wrapper.
NamedTensors parse_weights(const Bytes& bytes);
// Also reads formats with several files: the pieces listed by *.index.json (checkpoint/pieces.h), a
// TensorFlow.js manifest (*.json), and an ONNX model with external data.
NamedTensors load_weights(const std::filesystem::path& path);

// Writes safetensors, NPZ, or NPY (one tensor), by extension.
void save_weights(const std::filesystem::path& path, const NamedTensors& tensors);

// A parameter of a model.
struct Expected {
  std::string name;
  Shape shape;
};

struct Mismatch {
  std::string name;
  Shape expected, found;
};

// The match between the tensors of a file and the parameters of a model.
struct Match {
  std::vector<std::string> missing;     // in the model only
  std::vector<std::string> unexpected;  // in the file only
  std::vector<Mismatch> mismatched;     // in both, with different shapes

  bool complete() const { return missing.empty() && mismatched.empty(); }
  // A report of several lines, with the nearest unexpected name for each missing one. "" if
  // everything matches.
  std::string report() const;
};

Match match(const std::vector<Expected>& expected, const NamedTensors& found);

}  // namespace artel::checkpoint
