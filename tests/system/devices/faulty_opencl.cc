// An OpenCL loader with a fault, for ARTEL_OPENCL. Its functions are those of the system's loader,
// which it is linked to, except for these. ARTEL_FAULT says what is wrong:
//
//   wrong   the first number of each copy from the device is too large by 1
//   lost    kernels do not start; if ARTEL_FAULT_PROCESS names a file, only in the process whose
//           number the file holds
//   full    there is no memory for buffers of 4 MiB or more
//   gpus    there are two of each device, and they are GPUs
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
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

bool is_lost() {
  if (!has_fault("lost")) return false;
  const char* const file = std::getenv("ARTEL_FAULT_PROCESS");
  if (!file) return true;
  pid_t process = 0;
  std::ifstream(file) >> process;
  return process == ::getpid();
}

}  // namespace

extern "C" {

int32_t clGetDeviceIDs(void* platform, uint64_t type, uint32_t count, void** devices,
                       uint32_t* found) {
  static auto* const real = of_system("clGetDeviceIDs", &clGetDeviceIDs);
  if (!has_fault("gpus")) return real(platform, type, count, devices, found);
  const int32_t status = real(platform, type, count / 2, devices, found);
  for (uint32_t i = 0; status == 0 && devices && i < count / 2; ++i)
    devices[count / 2 + i] = devices[i];
  if (found) *found *= 2;
  return status;
}

int32_t clGetDeviceInfo(void* device, uint32_t info, size_t bytes, void* value, size_t* needed) {
  static auto* const real = of_system("clGetDeviceInfo", &clGetDeviceInfo);
  constexpr uint32_t kType = 0x1000;
  constexpr uint64_t kGpu = 4;
  const int32_t status = real(device, info, bytes, value, needed);
  if (has_fault("gpus") && info == kType && value) *static_cast<uint64_t*>(value) = kGpu;
  return status;
}

void* clCreateBuffer(void* context, uint64_t flags, size_t bytes, void* host, int32_t* status) {
  static auto* const real = of_system("clCreateBuffer", &clCreateBuffer);
  constexpr size_t kLarge = size_t{4} << 20;
  constexpr int32_t kNoMemory = -4;
  if (!has_fault("full") || bytes < kLarge) return real(context, flags, bytes, host, status);
  *status = kNoMemory;
  return nullptr;
}

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
  if (is_lost()) return kOutOfResources;
  return real(queue, kernel, dimensions, offset, global, local, waits, wait_for, event);
}

}  // extern "C"
