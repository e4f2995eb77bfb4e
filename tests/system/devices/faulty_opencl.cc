// An OpenCL loader with a fault, for ARTEL_OPENCL. Its functions are those of the system's loader,
// which it is linked to, except for these two. ARTEL_FAULT says what is wrong:
//
//   wrong   the first number of each copy from the device is too large by 1
//   lost    kernels do not start
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

bool has_fault(std::string_view name) {
  const char* const fault = std::getenv("ARTEL_FAULT");
  return fault != nullptr && fault == name;
}

template <typename Function>
Function* of_system(const char* name, Function*) {
  static void* const loader = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(loader, name));
}

}  // namespace

extern "C" {

int32_t clEnqueueReadBuffer(void* queue, void* buffer, uint32_t blocking, size_t offset,
                            size_t bytes, void* to, uint32_t waits, void* wait_for, void* event) {
  static auto* const real = of_system("clEnqueueReadBuffer", &clEnqueueReadBuffer);
  const bool wrong = has_fault("wrong") && bytes >= sizeof(float);
  const int32_t status =
      real(queue, buffer, wrong ? 1 : blocking, offset, bytes, to, waits, wait_for, event);
  if (wrong) *static_cast<float*>(to) += 1;
  return status;
}

int32_t clEnqueueNDRangeKernel(void* queue, void* kernel, uint32_t dimensions, const size_t* offset,
                               const size_t* global, const size_t* local, uint32_t waits,
                               void* wait_for, void* event) {
  static auto* const real = of_system("clEnqueueNDRangeKernel", &clEnqueueNDRangeKernel);
  constexpr int32_t kOutOfResources = -5;
  if (has_fault("lost")) return kOutOfResources;
  return real(queue, kernel, dimensions, offset, global, local, waits, wait_for, event);
}

}  // extern "C"
