#include "artel/exec/devices.h"

#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/mutex.h"
#include "artel/base/plural.h"
#include "artel/exec/opencl/device.h"
#include "artel/exec/opencl/self_test.h"

namespace artel {
namespace {

constexpr std::string_view kNumbered = "opencl:", kUntested = " untested";

// "opencl:1 untested" without its second word.
std::string_view base_name(std::string_view name) {
  if (name.ends_with(kUntested)) name.remove_suffix(kUntested.size());
  return name;
}

// The number in "opencl:N", or nothing for another name.
std::optional<int> number_in(std::string_view name) {
  if (!name.starts_with(kNumbered)) return {};
  name.remove_prefix(kNumbered.size());
  int number = -1;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = problem == std::errc() && end == name.data() + name.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

struct OpenedDevice {
  std::unique_ptr<opencl::OpenClDevice> device;
  std::optional<std::string> problem;  // found by its self-test; nothing: was not tested
};

// Tests a device once, when it is first used with a test.
Device& opened(const std::vector<opencl::Description>& all, int number, bool tested,
               double timeout) {
  static Mutex mutex;
  static std::map<int, OpenedDevice> devices;
  const MutexLock lock(mutex);
  OpenedDevice& one = devices[number];
  if (!one.device) {
    std::string problem;
    one.device = std::make_unique<opencl::OpenClDevice>(*opencl::find_api(problem),
                                                        all[static_cast<size_t>(number)], number);
  }
  one.device->set_timeout(timeout);
  if (!tested) return *one.device;
  if (!one.problem) one.problem = opencl::self_test(*one.device);
  require(
      one.problem->empty(), ErrorKind::unsupported,
      "{} fails the self-test: {}; update its driver, or use the device \"cpu\"; \"opencl:{}{}\" "
      "(artel train --untested-device) uses it anyway",
      one.device->name(), *one.problem, number, kUntested);
  return *one.device;
}

void tell_sharing(int place, int count, const Device& device) {
  log(LogLevel::info, "worker {} of this machine shares {}: workers here can use only {}", place,
      device.name(), counted(count, "OpenCL device"));
}

// Assigns the devices that pass their self-test to the workers in turn.
Device& accelerator(int place, double timeout) {
  std::vector<opencl::Description> all;
  std::string problem = "no OpenCL device other than CPUs";
  try {
    all = opencl::find_devices();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    problem = error.what();
  }
  std::vector<Device*> passed;
  for (const int number : opencl::devices_to_spread(all)) try {
      if (std::ssize(passed) > place || all[static_cast<size_t>(number)].is_cpu) break;
      passed.push_back(&opened(all, number, true, timeout));
    } catch (const Error& error) {
      problem = error.what();
      log(LogLevel::warning, "{}", problem);
    }
  if (passed.empty()) {
    if (place == 0) log(LogLevel::info, "device \"auto\" is the CPU: {}", problem);
    return cpu();
  }
  Device& own = *passed[static_cast<size_t>(place) % passed.size()];
  if (place >= std::ssize(passed)) tell_sharing(place, static_cast<int>(passed.size()), own);
  return own;
}

}  // namespace

void check_device_name(std::string_view name) {
  const std::string_view base = base_name(name);
  require(base == "cpu" || base == "auto" || base == "opencl" || number_in(base),
          ErrorKind::invalid_argument,
          "device: got '{}', expected \"cpu\", \"opencl\", \"opencl:N\", or \"auto\"", name);
}

std::string untested_device(std::string_view name) {
  return fmt::format("{}{}", base_name(name), kUntested);
}

Device& device_by_name(std::string_view name, const DeviceUser& user) {
  check_device_name(name);
  const std::string_view base = base_name(name);
  if (base == "cpu") return cpu();
  if (base == "auto") return accelerator(user.place, user.timeout);
  const std::vector<opencl::Description> all = opencl::find_devices();
  const std::vector<int> spread = opencl::devices_to_spread(all);
  const auto count = static_cast<int>(all.size()), choice = static_cast<int>(spread.size());
  const int number =
      number_in(base).value_or(spread[static_cast<size_t>(user.place) % spread.size()]);
  require(
      number < count, ErrorKind::not_found,
      "device '{}': this machine has {} OpenCL device{}, opencl:0{}; `artel devices` lists them",
      base, count, count == 1 ? "" : "s",
      count > 1 ? fmt::format(" to opencl:{}", count - 1) : std::string());
  Device& own = opened(all, number, base == name, user.timeout);
  if (base == "opencl" && user.place >= choice) tell_sharing(user.place, choice, own);
  if (number_in(base) && user.place > 0)
    log(LogLevel::info,
        "worker {} of this machine shares {} with all workers that are set to \"{}\"; \"opencl\" "
        "gives each worker its own device if there are enough",
        user.place, own.name(), base);
  return own;
}

}  // namespace artel
