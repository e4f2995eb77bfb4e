// An OpenCL 1.2 device.
//
// Device memory consists of driver buffers, but callers use addresses. Each buffer therefore
// reserves a range of inaccessible host addresses, and a launch translates an address into a buffer
// and an offset. Kernels run in launch order in one queue. Copies pass through memory that is never
// freed, so a driver that hangs cannot write to memory that has another owner. `read` and `finish`
// wait for at most the timeout; after that, the driver counts as hung, which is a LostDevice error.
// Thread safe.
//
//   const auto& scale = device.kernel(kSource, "scale");
//   device.run(scale, artel::opencl::items(n), {x.address(), n, 2.0f});
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/base/time.h"
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
  bool available = true, has_compiler = true;
  // Adds as the CPU does: rounds to nearest and keeps subnormal numbers.
  bool adds_exactly = false;
  int64_t compute_units = 0;
  uint64_t memory = 0, largest_allocation = 0;  // bytes
  size_t work_group_size = 0;

  // Why Artel's kernels cannot run on it; empty if they can.
  std::string problem() const;
};
// Number of work items of the largest work group in Artel's kernels.
inline constexpr size_t kLargestWorkGroup = 64;

// All devices of all platforms, in the loader's order. Throws an Error of kind unsupported if there
// is no loader, platform, or device.
std::vector<Description> find_devices();

// The numbers of the devices for the workers of a machine: all usable devices that are not CPUs. If
// there is none, all usable devices. If no device is usable, all devices.
std::vector<int> devices_to_spread(const std::vector<Description>& all);

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
  static constexpr double kTimeout = 300;  // seconds

  // Throws if the device has a problem or the driver cannot create a context or queue. `number` is
  // the index in find_devices().
  OpenClDevice(const Api& api, Description description, int number, double timeout = kTimeout);
  // Sets the seconds after which a wait for the device is an error.
  void set_timeout(double seconds) { timeout_ = seconds; }

  std::string_view kind() const override { return "opencl"; }
  std::string name() const override;
  std::string facts() const override;
  Memory allocate(size_t bytes) override;
  void write(std::byte* to, const std::byte* from, size_t bytes) override;
  void read(const std::byte* from, std::byte* to, size_t bytes) override;
  void read_later(const std::byte* from, std::byte* to, size_t bytes) override;
  void finish() override;
  DeviceUse use() const override;

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

  // A buffer for one part of a copy. In use while it has an event.
  struct Stage {
    std::byte* memory = nullptr;  // kStageBytes
    Event event = nullptr;
    std::byte* to = nullptr;  // where a finished read goes; null for a write
    size_t bytes = 0;
  };
  static constexpr size_t kStages = 8, kStageBytes = size_t{1} << 20;

  void check(Status status, std::string_view doing) const;
  // Like `check`, for a device that has worked before: throws LostDevice.
  void check_work(Status status, std::string_view doing) const;
  void require_own_process() const;
  // Waits for a command and releases its event. `enqueued` is the status returned when it was
  // enqueued. Returns the final status. Throws LostDevice after the timeout.
  Status wait(Status enqueued, Event event, std::string_view doing);
  Status wait_for_all(std::string_view doing);
  // Returns the next stage when it is free.
  Stage& next_stage() ARTEL_REQUIRES(stage_mutex_);
  void settle(Stage& stage) ARTEL_REQUIRES(stage_mutex_);
  void settle_reads() ARTEL_REQUIRES(stage_mutex_);
  // Gives up all stages, because the driver may still access them.
  void abandon_stages() ARTEL_REQUIRES(stage_mutex_);
  template <typename Copy>
  void in_stages(const Copy& copy) ARTEL_REQUIRES(stage_mutex_);
  void enqueue_reads(const std::byte* from, std::byte* to, size_t bytes)
      ARTEL_REQUIRES(stage_mutex_);
  Memory reserve_addresses(Buffer buffer, size_t bytes, size_t room);
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
  std::atomic<double> timeout_;
  pid_t process_;  // process that opened the device
  Context context_ = nullptr;
  Queue queue_ = nullptr;
  mutable Mutex memory_mutex_;
  std::map<const std::byte*, Allocation> allocations_ ARTEL_GUARDED_BY(memory_mutex_);
  Mutex build_mutex_;
  std::map<std::string, BuiltProgram, std::less<>> programs_ ARTEL_GUARDED_BY(build_mutex_);
  std::map<std::string, BuiltKernel, std::less<>> kernels_ ARTEL_GUARDED_BY(build_mutex_);
  int compiled_ ARTEL_GUARDED_BY(build_mutex_) = 0;  // programs that were not in the cache
  Mutex stage_mutex_;
  std::array<Stage, kStages> stages_ ARTEL_GUARDED_BY(stage_mutex_);
  size_t next_stage_ ARTEL_GUARDED_BY(stage_mutex_) = 0;
  Mutex launch_mutex_;  // OpenCL sets arguments per kernel, not per launch
  mutable Mutex busy_mutex_;
  // Time of the first command since the device was last known to be idle.
  std::optional<Clock::time_point> busy_since_ ARTEL_GUARDED_BY(busy_mutex_);
  double busy_seconds_ ARTEL_GUARDED_BY(busy_mutex_) = 0;
  std::atomic<int64_t> to_device_ = 0, from_device_ = 0, launches_ = 0;
  std::atomic<size_t> allocated_ = 0;
};

}  // namespace artel::opencl
