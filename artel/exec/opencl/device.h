// An OpenCL 1.2 device.
//
// Device memory consists of driver buffers, but callers use addresses. Each buffer therefore
// reserves a range of inaccessible host addresses, and a launch translates an address into a buffer
// and an offset. Kernels run in launch order in one queue. Copies wait for them for at most
// kPatience seconds; after that, the driver counts as hung, which is an error. Thread safe.
//
//   const auto& scale = device.kernel(kSource, "scale");
//   device.run(scale, artel::opencl::items(n), {x.address(), n, 2.0f});
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/exec/device.h"
#include "artel/exec/opencl/api.h"

namespace artel::opencl {

// Properties of a device, as reported by its driver.
struct Description {
  PlatformId platform = nullptr;
  DeviceId device = nullptr;
  std::string name, vendor, driver, version;
  std::string platform_name, platform_version;
  bool is_cpu = false;
  bool usable = true;  // available and with a compiler
  int64_t compute_units = 0;
  uint64_t memory = 0, largest_allocation = 0;  // bytes
  size_t work_group_size = 0;
};

// All devices of all platforms, in the loader's order. Throws an Error of kind unsupported if there
// is no loader, platform, or device.
std::vector<Description> find_devices();

// A kernel argument: device memory (passed as two parameters, the buffer and the offset in bytes),
// null, or a number. Integers have 32 bits, random keys 64.
class Argument {
 public:
  Argument(const void* memory) : kind_(Kind::memory), memory_(memory) {}  // NOLINT: implicit
  Argument(int64_t value);                                                // NOLINT: implicit
  Argument(int value) : kind_(Kind::integer), integer_(value) {}          // NOLINT: implicit
  Argument(bool value) : kind_(Kind::integer), integer_(value) {}         // NOLINT: implicit
  Argument(float value) : kind_(Kind::number), number_(value) {}          // NOLINT: implicit
  Argument(uint64_t key) : kind_(Kind::key), key_(key) {}                 // NOLINT: implicit

 private:
  friend class OpenClDevice;
  enum class Kind { memory, integer, number, key };

  Kind kind_;
  const void* memory_ = nullptr;
  int32_t integer_ = 0;
  float number_ = 0;
  uint64_t key_ = 0;
};

// The work items of a launch. Local sizes are explicit, because results may depend on them.
struct Range {
  std::array<size_t, 3> global = {1, 1, 1};
  std::array<size_t, 3> local = {1, 1, 1};
};
inline constexpr size_t kItems = 64;  // default work group size
// At least n work items, in work groups of kItems. Kernels ignore the excess items.
Range items(int64_t n);
// n work groups of kItems, one per row.
Range groups(int64_t n);

// Exists until the program ends. The driver then frees the context, queue, and programs.
class OpenClDevice : public Device {
 public:
  static constexpr double kPatience = 300;

  // Throws if the driver cannot create a context or queue. `number` is the index in find_devices().
  // A command that takes longer than `patience` seconds is an error.
  OpenClDevice(const Api& api, Description description, int number, double patience = kPatience);

  std::string_view kind() const override { return "opencl"; }
  std::string name() const override;
  std::string facts() const override;
  Memory allocate(size_t bytes) override;
  void write(std::byte* to, const std::byte* from, size_t bytes) override;
  void read(const std::byte* from, std::byte* to, size_t bytes) override;
  void finish() override;
  CopiedBytes copied() const override { return {to_device_, from_device_}; }

  const Description& description() const { return description_; }

  // Returns a kernel of a program. The first call compiles the program or reads it from the disk
  // cache. The common declarations (source.h) are prepended to the source.
  BuiltKernel kernel(std::string_view source, const std::string& name,
                     const std::string& options = "");
  // Launches a kernel. Does nothing for an empty range.
  void run(BuiltKernel kernel, const Range& range, std::span<const Argument> arguments);
  void run(BuiltKernel kernel, const Range& range, std::initializer_list<Argument> arguments) {
    run(kernel, range, std::span(arguments.begin(), arguments.size()));
  }
  int64_t launches() const { return launches_; }

 private:
  struct Allocation {
    Buffer buffer;
    size_t bytes;
  };
  struct Place {
    Buffer buffer;
    size_t offset;
  };

  void check(Status status, std::string_view doing) const;
  // Waits for a command and releases its event. `enqueued` is the status returned when it was
  // enqueued. Returns the final status. Throws an error of kind timeout after `patience` seconds.
  Status wait(Status enqueued, Event event, std::string_view doing) const;
  Status wait_for_all(std::string_view doing) const;
  Place locate(const void* address) const;
  void release(std::byte* address);
  BuiltProgram build(const std::string& text, const std::string& options)
      ARTEL_REQUIRES(build_mutex_);
  void tell_progress() ARTEL_REQUIRES(build_mutex_);
  BuiltProgram from_disk(const std::string& key, const std::string& options);
  void to_disk(const std::string& key, BuiltProgram program) const;
  std::string build_log(BuiltProgram program) const;

  const Api& api_;
  Description description_;
  int number_;
  double patience_;
  Context context_ = nullptr;
  Queue queue_ = nullptr;
  mutable Mutex memory_mutex_;
  std::map<const std::byte*, Allocation> allocations_ ARTEL_GUARDED_BY(memory_mutex_);
  Mutex build_mutex_;
  std::map<std::string, BuiltProgram, std::less<>> programs_ ARTEL_GUARDED_BY(build_mutex_);
  std::map<std::string, BuiltKernel, std::less<>> kernels_ ARTEL_GUARDED_BY(build_mutex_);
  int compiled_ ARTEL_GUARDED_BY(build_mutex_) = 0;  // programs that were not in the cache
  Mutex launch_mutex_;  // OpenCL sets arguments per kernel, not per launch
  std::atomic<int64_t> to_device_ = 0, from_device_ = 0, launches_ = 0;
};

}  // namespace artel::opencl
