// A tensor delivered piece by piece, so that a writer never holds all of it in memory.
//
//   const std::vector<artel::TensorSource> sources = artel::sources_of(trainer.weights());
//   sources.front().give([](std::span<const std::byte> piece) {
//     artel::println("{} bytes", piece.size());
//   });
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "artel/tensor/named_tensor.h"

namespace artel {

struct TensorSource {
  using Write = std::function<void(std::span<const std::byte>)>;

  std::string name;
  DType type = DType::f32;
  Shape shape;
  // Calls `write` with consecutive pieces of the row-major bytes, of any size.
  std::function<void(const Write& write)> give;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(type); }
};

// Approximate piece size of sources that convert a large tensor.
inline constexpr size_t kPieceBytes = size_t{4} << 20;

// Sources of existing tensors, sharing their memory.
std::vector<TensorSource> sources_of(const NamedTensors& tensors);

// Collects the sources into tensors in memory.
NamedTensors tensors_of(const std::vector<TensorSource>& sources);

}  // namespace artel
