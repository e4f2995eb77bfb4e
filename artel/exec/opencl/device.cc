#include "artel/exec/opencl/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/exec/opencl/program_cache.h"
#include "artel/exec/opencl/source.h"

namespace artel::opencl {
namespace {

constexpr size_t kAlignment = 64, kPage = 4096;

size_t padded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Argument::Argument(int64_t value) : kind_(Kind::integer), integer_(static_cast<int32_t>(value)) {
  require(value == integer_, ErrorKind::unsupported,
          "[opencl] got a tensor extent of {}, expected less than 2^31; use smaller batches or the "
          "device \"cpu\"",
          value);
}

Range items(int64_t n) { return {{padded(static_cast<size_t>(n), kItems), 1, 1}, {kItems, 1, 1}}; }

Range groups(int64_t n) { return {{static_cast<size_t>(n) * kItems, 1, 1}, {kItems, 1, 1}}; }

OpenClDevice::OpenClDevice(const Api& api, Description description, int number, double patience)
    : api_(api), description_(std::move(description)), number_(number), patience_(patience) {
  require(description_.usable, ErrorKind::unsupported,
          "{}: the driver reports that the device is not available or has no compiler", name());
  Status status = kSuccess;
  context_ = api_.create_context(nullptr, 1, &description_.device, nullptr, nullptr, &status);
  check(status, "creating a context");
  queue_ = api_.create_queue(context_, description_.device, 0, &status);
  check(status, "creating a queue");
}

std::string OpenClDevice::name() const {
  return fmt::format("opencl:{} ({})", number_, description_.name);
}

std::string OpenClDevice::facts() const {
  return fmt::format("{}, driver {}, {}", description_.name, description_.driver,
                     description_.platform_version);
}

void OpenClDevice::check(Status status, std::string_view doing) const {
  if (status != kSuccess)
    fail(ErrorKind::unsupported, "{}: {} failed: {}", name(), doing, describe(status));
}

Memory OpenClDevice::allocate(size_t bytes) {
  const size_t room = padded(std::max<size_t>(bytes, 1), kAlignment);
  Status status = kSuccess;
  const Buffer buffer = api_.create_buffer(context_, /*read and write*/ 1, room, nullptr, &status);
  const uint32_t zero = 0;
  // Drivers allocate lazily, so force the allocation here to detect a lack of memory.
  if (status == kSuccess)
    status = api_.fill_buffer(queue_, buffer, &zero, sizeof zero, 0, room, 0, nullptr, nullptr);
  if (status == kSuccess) status = wait_for_all("clearing memory");
  if (status != kSuccess)
    fail(ErrorKind::memory,
         "{}: cannot allocate {}: {}; the device has {}, at most {} per buffer; use a smaller "
         "batch, "
         "more lanes, or memory_limit",
         name(), format_bytes(static_cast<double>(bytes)), describe(status),
         format_bytes(static_cast<double>(description_.memory)),
         format_bytes(static_cast<double>(description_.largest_allocation)));
  void* const range = ::mmap(nullptr, padded(room, kPage), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(range != MAP_FAILED, ErrorKind::memory, "{}: cannot reserve addresses for {}", name(),
          format_bytes(static_cast<double>(bytes)));
  auto* const address = static_cast<std::byte*>(range);
  const MutexLock lock(memory_mutex_);
  allocations_[address] = {buffer, room};
  return {*this, {address, [this](std::byte* at) { release(at); }}, bytes};
}

void OpenClDevice::release(std::byte* address) {
  const MutexLock lock(memory_mutex_);
  const auto found = allocations_.find(address);
  api_.release_buffer(found->second.buffer);  // the driver waits for kernels that use it
  ::munmap(address, padded(found->second.bytes, kPage));
  allocations_.erase(found);
}

OpenClDevice::Place OpenClDevice::locate(const void* address) const {
  if (!address) return {nullptr, 0};
  const auto* const at = static_cast<const std::byte*>(address);
  const MutexLock lock(memory_mutex_);
  auto found = allocations_.upper_bound(at);
  require(found != allocations_.begin(), ErrorKind::internal, "{}: an address of other memory",
          name());
  --found;
  const auto offset = static_cast<size_t>(at - found->first);
  require(offset <= found->second.bytes, ErrorKind::internal, "{}: an address of other memory",
          name());
  return {found->second.buffer, offset};
}

void OpenClDevice::write(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  const Place place = locate(to);
  constexpr std::string_view kDoing = "a copy to the device";
  Event event = nullptr;
  const Status status = api_.write_buffer(queue_, place.buffer, /*blocking=*/0, place.offset, bytes,
                                          from, 0, nullptr, &event);
  check(wait(status, event, kDoing), kDoing);
  to_device_ += static_cast<int64_t>(bytes);
}

void OpenClDevice::read(const std::byte* from, std::byte* to, size_t bytes) {
  if (bytes == 0) return;
  const Place place = locate(from);
  constexpr std::string_view kDoing = "a copy from the device";
  Event event = nullptr;
  const Status status = api_.read_buffer(queue_, place.buffer, /*blocking=*/0, place.offset, bytes,
                                         to, 0, nullptr, &event);
  check(wait(status, event, kDoing), kDoing);
  from_device_ += static_cast<int64_t>(bytes);
}

void OpenClDevice::finish() {
  constexpr std::string_view kDoing = "running kernels";
  check(wait_for_all(kDoing), kDoing);
}

Status OpenClDevice::wait_for_all(std::string_view doing) const {
  Event event = nullptr;
  const Status status = api_.mark(queue_, 0, nullptr, &event);
  return wait(status, event, doing);
}

// Polls, because OpenCL has no wait with a deadline. Each pause is an eighth of the time so far.
Status OpenClDevice::wait(Status enqueued, Event event, std::string_view doing) const {
  constexpr double kLeast = 5e-6, kMost = 2e-3;
  if (enqueued != kSuccess) return enqueued;
  Status status = api_.flush(queue_);
  const Clock::time_point begin = Clock::now();
  while (status == kSuccess) {
    Status state = 0;
    status = api_.get_event_info(event, EventInfo::status, sizeof state, &state, nullptr);
    if (status == kSuccess && state < 0) status = state;
    if (status != kSuccess || state == 0) break;
    const double seconds = seconds_between(begin, Clock::now());
    if (seconds > patience_)
      fail(ErrorKind::timeout,
           "{}: {} did not finish within {:g} s, so the device hangs or is lost; restart its "
           "driver, "
           "or use the device \"cpu\"",
           name(), doing, patience_);
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::clamp(seconds / 8, kLeast, kMost)));
  }
  api_.release_event(event);
  return status;
}

void OpenClDevice::run(BuiltKernel kernel, const Range& range,
                       std::span<const Argument> arguments) {
  if (range.global[0] == 0 || range.global[1] == 0 || range.global[2] == 0) return;
  const MutexLock lock(launch_mutex_);
  uint32_t index = 0;
  const auto set = [&](const auto& value) {
    check(api_.set_argument(kernel, index++, sizeof value, &value), "setting an argument");
  };
  for (const Argument& argument : arguments) switch (argument.kind_) {
      case Argument::Kind::memory: {
        const Place place = locate(argument.memory_);
        set(place.buffer);
        set(static_cast<int64_t>(place.offset));
        break;
      }
      case Argument::Kind::integer:
        set(argument.integer_);
        break;
      case Argument::Kind::number:
        set(argument.number_);
        break;
      case Argument::Kind::key:
        set(argument.key_);
        break;
    }
  check(api_.run_kernel(queue_, kernel, 3, nullptr, range.global.data(), range.local.data(), 0,
                        nullptr, nullptr),
        "starting a kernel");
  ++launches_;
}

BuiltKernel OpenClDevice::kernel(std::string_view source, const std::string& name,
                                 const std::string& options) {
  std::string text = fmt::format("{}{}", kCommonSource, source);
  const MutexLock lock(build_mutex_);
  BuiltProgram& program = programs_[fmt::format("{}\n{}", options, text)];
  if (!program) {
    program = build(text, options);
  }
  BuiltKernel& found = kernels_[fmt::format("{}\n{}\n{}", name, options, text)];
  if (!found) {
    Status status = kSuccess;
    found = api_.create_kernel(program, name.c_str(), &status);
    check(status, fmt::format("creating the kernel '{}'", name));
  }
  return found;
}

BuiltProgram OpenClDevice::build(const std::string& text, const std::string& options) {
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", facts(), description_.version, options, text);
  const std::string all_options = "-cl-std=CL1.2 " + options;
  if (const BuiltProgram kept = from_disk(key, all_options)) return kept;
  tell_progress();
  const char* pointer = text.c_str();
  const size_t length = text.size();
  Status status = kSuccess;
  const BuiltProgram program = api_.create_program(context_, 1, &pointer, &length, &status);
  check(status, "creating a program");
  status =
      api_.build_program(program, 1, &description_.device, all_options.c_str(), nullptr, nullptr);
  if (status != kSuccess) {
    const std::string messages = build_log(program);
    api_.release_program(program);
    fail(ErrorKind::unsupported, "{}: the driver cannot compile Artel's kernels: {}: {}", name(),
         describe(status), messages);
  }
  to_disk(key, program);
  return program;
}

// Logs the first program and then every few.
void OpenClDevice::tell_progress() {
  constexpr int kEvery = 10;
  if (compiled_ == 0)
    log(LogLevel::info,
        "{}: compiling kernels; this takes seconds to a minute, and the next start reads them from "
        "the disk",
        name());
  else if (compiled_ % kEvery == 0)
    log(LogLevel::info, "{}: {} programs compiled", name(), compiled_);
  ++compiled_;
}

std::string OpenClDevice::build_log(BuiltProgram program) const {
  constexpr size_t kMost = size_t{1} << 16;
  size_t bytes = 0;
  api_.get_build_info(program, description_.device, BuildInfo::log, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  if (bytes > 0)
    api_.get_build_info(program, description_.device, BuildInfo::log, bytes, text.data(), &bytes);
  return text.substr(0, std::min(text.find('\0'), kMost));
}

BuiltProgram OpenClDevice::from_disk(const std::string& key, const std::string& options) {
  const std::optional<std::string> binary = kept_binary(key);
  if (!binary) return nullptr;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(binary->data());
  const unsigned char* pointer = bytes;
  const size_t length = binary->size();
  Status of_binary = kSuccess, status = kSuccess;
  const BuiltProgram program = api_.create_program_with_binary(
      context_, 1, &description_.device, &length, &pointer, &of_binary, &status);
  if (status != kSuccess || of_binary != kSuccess) return nullptr;
  if (api_.build_program(program, 1, &description_.device, options.c_str(), nullptr, nullptr) ==
      kSuccess)
    return program;
  api_.release_program(program);
  return nullptr;
}

void OpenClDevice::to_disk(const std::string& key, BuiltProgram program) const {
  size_t bytes = 0;
  if (api_.get_program_info(program, ProgramInfo::binary_sizes, sizeof bytes, &bytes, nullptr) !=
          kSuccess ||
      bytes == 0)
    return;
  std::string binary(bytes, '\0');
  char* pointer = binary.data();
  if (api_.get_program_info(program, ProgramInfo::binaries, sizeof pointer, &pointer, nullptr) ==
      kSuccess)
    keep_binary(key, binary);
}

}  // namespace artel::opencl
