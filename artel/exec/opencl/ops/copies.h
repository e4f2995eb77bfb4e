// Copies within an OpenCL device.
#pragma once

#include <vector>

#include "artel/exec/kernel.h"
#include "artel/exec/opencl/device.h"

namespace artel::opencl {

// Copies f32 elements, given the source and target strides of each axis.
class StridedCopy {
 public:
  // Throws an error of kind unsupported for more than six axes that cannot be merged.
  StridedCopy(OpenClDevice& device, const std::vector<int64_t>& extents,
              const std::vector<int64_t>& from, const std::vector<int64_t>& to);
  void run(const float* from, float* to) const;

 private:
  OpenClDevice* device_;
  BuiltKernel kernel_ = nullptr;
  int64_t elements_ = 1;
  std::vector<Argument> numbers_;
};

// Sets n floats to a value.
class Fill {
 public:
  explicit Fill(OpenClDevice& device);
  void run(float* to, int64_t n, float value = 0) const;

 private:
  OpenClDevice* device_;
  BuiltKernel kernel_;
};

// into += from, float by float, for memory of one device.
void add_memory(const Memory& from, const Memory& into);

Kernel make_layout_change(const Shape& shape, const Layout& from, const Layout& to, Device& device);

}  // namespace artel::opencl
