// The extents of a tensor, outermost first. A scalar has rank 0 and one element.
//
//   const artel::Shape shape = {64, 3, 32, 32};
//   artel::println("{}: {} elements", to_string(shape), shape.elements());
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace artel {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : extents_(extents) {}
  explicit Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) {}

  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t operator[](int axis) const { return extents_[axis]; }
  int64_t& operator[](int axis) { return extents_[axis]; }
  int64_t back() const { return extents_.back(); }
  // The product of the extents; throws if it overflows.
  int64_t elements() const;
  const std::vector<int64_t>& extents() const { return extents_; }

  bool operator==(const Shape& other) const = default;

 private:
  std::vector<int64_t> extents_;
};

// "[64, 3, 32, 32]".
std::string to_string(const Shape& shape);

// The distance in elements between neighbours along each axis of a dense row-major tensor.
std::vector<int64_t> row_major_strides(const Shape& shape);

// The broadcast of two shapes under NumPy's rules. Throws if they are incompatible.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace artel
