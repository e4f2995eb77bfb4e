// Weights in any format that Artel knows, and how they fit a model.
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

// The tensors of a safetensors, PyTorch (zip or legacy), NPZ, NPY or HDF5 file, recognised by
// content.
// From a PyTorch file that also holds other things, the entry "state_dict", "model_state_dict" or
// "model" is taken, and the prefix "module." of a parallel wrapper is dropped.
NamedTensors parse_weights(const Bytes& bytes);
// The same for a file; for the pieces that a file named *.index.json lists (checkpoint/pieces.h);
// and for formats that may spread over several files: a manifest of TensorFlow.js (*.json) and an
// ONNX model.
NamedTensors load_weights(const std::filesystem::path& path);

// Writes safetensors, NPZ or NPY (one tensor), by extension.
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

// How the tensors of a file match the parameters of a model.
struct Match {
  std::vector<std::string> missing;     // in the model only
  std::vector<std::string> unexpected;  // in the file only
  std::vector<Mismatch> mismatched;     // in both, with different shapes

  bool complete() const { return missing.empty() && mismatched.empty(); }
  // Lines for people; a missing name comes with the nearest unexpected one. "" if everything
  // matches.
  std::string report() const;
};

Match match(const std::vector<Expected>& expected, const NamedTensors& found);

}  // namespace artel::checkpoint
