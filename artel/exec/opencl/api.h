// The functions of OpenCL 1.2 that Artel calls, loaded from the system's OpenCL library at run
// time.
//
// They are declared here, so that building needs no OpenCL headers and one binary runs with and
// without OpenCL. Values and signatures are those of the specification (CL/cl.h).
//
//   std::string problem;
//   if (const artel::opencl::Api* api = artel::opencl::find_api(problem))
//     api->flush(queue);
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace artel::opencl {

// Handles of objects owned by the driver.
using PlatformId = struct PlatformObject*;
using DeviceId = struct DeviceObject*;
using Context = struct ContextObject*;
using Queue = struct QueueObject*;
using Buffer = struct BufferObject*;
using BuiltProgram = struct ProgramObject*;
using BuiltKernel = struct KernelObject*;
using Event = struct EventObject*;
using Status = int32_t;

inline constexpr Status kSuccess = 0, kDeviceNotFound = -1, kNoPlatform = -1001;

enum class PlatformInfo : uint32_t { version = 0x0901, name = 0x0902 };
enum class DeviceInfo : uint32_t {
  type = 0x1000,
  compute_units = 0x1002,
  work_group_size = 0x1004,
  largest_allocation = 0x1010,
  memory = 0x101F,
  local_memory = 0x1023,
  available = 0x1027,
  compiler = 0x1028,
  single_precision = 0x101B,
  name = 0x102B,
  vendor = 0x102C,
  driver = 0x102D,
  version = 0x102F,
};
enum class EventInfo : uint32_t { status = 0x11D3 };  // 0: complete; negative: failed
enum class BuildInfo : uint32_t { log = 0x1183 };
enum class ProgramInfo : uint32_t { binary_sizes = 0x1165, binaries = 0x1166 };
// Bits of DeviceInfo::single_precision: subnormal numbers, and rounding to nearest.
inline constexpr uint64_t kSubnormals = 1, kRoundsToNearest = 4;
inline constexpr uint64_t kCpuType = 2, kAllTypes = 0xFFFFFFFF;

struct Api {
  Status (*get_platforms)(uint32_t count, PlatformId* platforms, uint32_t* found);
  Status (*get_platform_info)(PlatformId, PlatformInfo, size_t bytes, void* value, size_t* needed);
  Status (*get_devices)(PlatformId, uint64_t type, uint32_t count, DeviceId* devices,
                        uint32_t* found);
  Status (*get_device_info)(DeviceId, DeviceInfo, size_t bytes, void* value, size_t* needed);
  Context (*create_context)(const intptr_t* properties, uint32_t count, const DeviceId* devices,
                            void (*notify)(const char*, const void*, size_t, void*), void* data,
                            Status* status);
  Status (*release_context)(Context);
  Queue (*create_queue)(Context, DeviceId, uint64_t properties, Status* status);
  Status (*release_queue)(Queue);
  Status (*flush)(Queue);
  Buffer (*create_buffer)(Context, uint64_t flags, size_t bytes, void* host, Status* status);
  Status (*release_buffer)(Buffer);
  BuiltProgram (*create_program)(Context, uint32_t count, const char** sources,
                                 const size_t* lengths, Status* status);
  BuiltProgram (*create_program_with_binary)(Context, uint32_t count, const DeviceId* devices,
                                             const size_t* lengths, const unsigned char** binaries,
                                             Status* binary_status, Status* status);
  Status (*build_program)(BuiltProgram, uint32_t count, const DeviceId* devices,
                          const char* options, void (*notify)(BuiltProgram, void*), void* data);
  Status (*get_build_info)(BuiltProgram, DeviceId, BuildInfo, size_t bytes, void* value,
                           size_t* needed);
  Status (*get_program_info)(BuiltProgram, ProgramInfo, size_t bytes, void* value, size_t* needed);
  Status (*release_program)(BuiltProgram);
  BuiltKernel (*create_kernel)(BuiltProgram, const char* name, Status* status);
  Status (*release_kernel)(BuiltKernel);
  Status (*set_argument)(BuiltKernel, uint32_t index, size_t bytes, const void* value);
  Status (*run_kernel)(Queue, BuiltKernel, uint32_t dimensions, const size_t* offset,
                       const size_t* global, const size_t* local, uint32_t waits,
                       const Event* wait_for, Event* event);
  Status (*read_buffer)(Queue, Buffer, uint32_t blocking, size_t offset, size_t bytes, void* to,
                        uint32_t waits, const Event* wait_for, Event* event);
  Status (*write_buffer)(Queue, Buffer, uint32_t blocking, size_t offset, size_t bytes,
                         const void* from, uint32_t waits, const Event* wait_for, Event* event);
  Status (*fill_buffer)(Queue, Buffer, const void* pattern, size_t pattern_bytes, size_t offset,
                        size_t bytes, uint32_t waits, const Event* wait_for, Event* event);
  Status (*mark)(Queue, uint32_t waits, const Event* wait_for, Event* event);
  Status (*get_event_info)(Event, EventInfo, size_t bytes, void* value, size_t* needed);
  Status (*release_event)(Event);
};

// Loads libOpenCL.so.1, or the file in the environment variable ARTEL_OPENCL, on the first call.
// Returns null and sets `problem` if it is missing or incomplete, or if this process was forked
// from the one that loaded it. Drivers do not survive a fork.
const Api* find_api(std::string& problem);

// The problem of a process that was forked from `parent` after `parent` had used OpenCL.
std::string forked_process(pid_t parent);

// A readable name of the status, such as "out of device memory".
std::string describe(Status status);

}  // namespace artel::opencl
