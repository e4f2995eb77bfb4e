// A tensor that is given piece by piece, so that whoever writes it to a file never holds all of it.
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
  // Calls `write` with the row-major bytes in their order, in pieces of any size.
  std::function<void(const Write& write)> give;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(type); }
};

// What a source gives of a large tensor at a time, about, if it has to convert it.
inline constexpr size_t kPieceBytes = size_t{4} << 20;

// Sources of tensors that there are already; their memory is shared.
std::vector<TensorSource> sources_of(const NamedTensors& tensors);

// Copies of all that the sources give.
NamedTensors tensors_of(const std::vector<TensorSource>& sources);

}  // namespace artel
