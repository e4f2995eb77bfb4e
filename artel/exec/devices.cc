#include "artel/exec/devices.h"

#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/mutex.h"
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
Device& opened(const std::vector<opencl::Description>& all, int number, bool tested) {
  static Mutex mutex;
  static std::map<int, OpenedDevice> devices;
  const MutexLock lock(mutex);
  OpenedDevice& one = devices[number];
  if (!one.device) {
    std::string problem;
    one.device = std::make_unique<opencl::OpenClDevice>(*opencl::find_api(problem),
                                                        all[static_cast<size_t>(number)], number);
  }
  if (!tested) return *one.device;
  if (!one.problem) one.problem = opencl::self_test(*one.device);
  require(
      one.problem->empty(), ErrorKind::unsupported,
      "{} fails the self-test: {}; update its driver, or use the device \"cpu\"; \"opencl:{}{}\" "
      "(artel train --force) uses it all the same",
      one.device->name(), *one.problem, number, kUntested);
  return *one.device;
}

// The first that passes its self-test.
Device& first_accelerator() {
  std::string problem;
  if (!opencl::find_api(problem)) return cpu();
  std::vector<opencl::Description> all;
  try {
    all = opencl::find_devices();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
  }
  for (size_t i = 0; i < all.size(); ++i) try {
      if (!all[i].is_cpu && all[i].usable) return opened(all, static_cast<int>(i), true);
    } catch (const Error& error) {
      log(LogLevel::warning, "{}", error.what());
    }
  return cpu();
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

Device& device_by_name(std::string_view name, int place) {
  check_device_name(name);
  const std::string_view base = base_name(name);
  if (base == "cpu") return cpu();
  if (base == "auto") return first_accelerator();
  const std::vector<opencl::Description> all = opencl::find_devices();
  const auto count = static_cast<int>(all.size());
  const int number = number_in(base).value_or(place % count);
  if (base == "opencl" && place >= count)
    log(LogLevel::info, "worker {} of this machine shares opencl:{}: there {} {} OpenCL device{}",
        place, number, count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
  require(
      number < count, ErrorKind::not_found,
      "device '{}': this machine has {} OpenCL device{}, opencl:0{}; `artel devices` lists them",
      base, count, count == 1 ? "" : "s",
      count > 1 ? fmt::format(" to opencl:{}", count - 1) : std::string());
  return opened(all, number, base == name);
}

}  // namespace artel
