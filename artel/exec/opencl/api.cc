#include "artel/exec/opencl/api.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "artel/base/error.h"

namespace artel::opencl {
namespace {

struct Loaded {
  std::optional<Api> api;
  std::string problem;
  pid_t process = ::getpid();
};

template <typename Function>
void find_function(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (!function && missing.empty()) missing = name;
}

Loaded load() {
  const char* given = std::getenv("ARTEL_OPENCL");
  const std::string file = given && *given ? given : "libOpenCL.so.1";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return {{},
            fmt::format("no OpenCL loader: cannot open {}; install ocl-icd-libopencl1 and the "
                        "driver of your device",
                        file)};
  Api api;
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    find_function(library, name, function, missing);
  };
  find("clGetPlatformIDs", api.get_platforms);
  find("clGetPlatformInfo", api.get_platform_info);
  find("clGetDeviceIDs", api.get_devices);
  find("clGetDeviceInfo", api.get_device_info);
  find("clCreateContext", api.create_context);
  find("clReleaseContext", api.release_context);
  find("clCreateCommandQueue", api.create_queue);
  find("clReleaseCommandQueue", api.release_queue);
  find("clFlush", api.flush);
  find("clCreateBuffer", api.create_buffer);
  find("clReleaseMemObject", api.release_buffer);
  find("clCreateProgramWithSource", api.create_program);
  find("clCreateProgramWithBinary", api.create_program_with_binary);
  find("clBuildProgram", api.build_program);
  find("clGetProgramBuildInfo", api.get_build_info);
  find("clGetProgramInfo", api.get_program_info);
  find("clReleaseProgram", api.release_program);
  find("clCreateKernel", api.create_kernel);
  find("clReleaseKernel", api.release_kernel);
  find("clSetKernelArg", api.set_argument);
  find("clEnqueueNDRangeKernel", api.run_kernel);
  find("clEnqueueReadBuffer", api.read_buffer);
  find("clEnqueueWriteBuffer", api.write_buffer);
  find("clEnqueueFillBuffer", api.fill_buffer);
  find("clEnqueueMarkerWithWaitList", api.mark);
  find("clGetEventInfo", api.get_event_info);
  find("clReleaseEvent", api.release_event);
  if (!missing.empty())
    return {
        {},
        fmt::format("the OpenCL loader {} lacks {}; install ocl-icd-libopencl1", file, missing)};
  return {api, {}};
}

}  // namespace

const Api* find_api(std::string& problem) {
  static const Loaded loaded = load();
  problem = loaded.problem;
  if (loaded.api && loaded.process != ::getpid()) {
    problem = forked_process(loaded.process);
    return nullptr;
  }
  return loaded.api ? &*loaded.api : nullptr;
}

std::string forked_process(pid_t parent) {
  return fmt::format(
      "process {} used OpenCL before it forked this process, and drivers do not survive a fork; "
      "start a new process for the training, or use the device \"cpu\"",
      parent);
}

std::string describe(Status status) {
  static constexpr std::array<std::pair<Status, std::string_view>, 12> kMeanings = {
      {{-1, "no device"},
       {-2, "the device is not available"},
       {-3, "no compiler"},
       {-4, "out of device memory"},
       {-5, "out of device resources, or the device is lost"},
       {-6, "out of memory"},
       {-11, "a program cannot be built"},
       {-42, "an invalid binary"},
       {-54, "an invalid work-group size"},
       {-61, "an invalid buffer size"},
       {-1001, "no platform"},
       {-9999, "the device is lost"}}};
  for (const auto& [code, meaning] : kMeanings)
    if (code == status) return fmt::format("{} (OpenCL error {})", meaning, status);
  return fmt::format("OpenCL error {}", status);
}

}  // namespace artel::opencl
