// Devices run kernels and hold values.
//
// The processor is cpu(). Another kind of device is a subclass with kernels registered for its kind
// (exec/kernel.h). A program compiled for it runs on it the nodes it has kernels for, and all
// others on the processor (exec/plan/plan.h).
//
//   const artel::Memory memory = artel::cpu().allocate(1024);
//   memory.floats()[0] = 1;
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace artel {

class Memory;

// Bytes copied between the CPU and a device.
struct CopiedBytes {
  int64_t to_device = 0, from_device = 0;
};

// The work and memory of a device since the start of the program.
struct DeviceUse {
  CopiedBytes copied;
  size_t memory = 0;        // bytes allocated now
  double busy_seconds = 0;  // with work in its queue
};

// Must outlive all memory and programs on it. Thread safe.
class Device {
 public:
  virtual ~Device() = default;

  // The kind that kernels are registered for, such as "cpu".
  virtual std::string_view kind() const = 0;
  // For messages and profiles, such as "opencl:0 (Radeon RX 580)".
  virtual std::string name() const { return std::string(kind()); }
  // All properties that may change bits. Workers with different facts refuse to train together.
  virtual std::string facts() const { return std::string(kind()); }
  // Allocates zeroed memory, aligned to 64 bytes. Offsets may be added to its address. Only kernels
  // of the device and the two functions below may access it; the CPU may not be able to read it.
  virtual Memory allocate(size_t bytes) = 0;
  // Copy between CPU and device memory, after all kernels that have been launched. `from` may
  // change after `write` has returned, even if the device has not received it yet.
  virtual void write(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void read(const std::byte* from, std::byte* to, size_t bytes) = 0;
  // Like `read`, but `to` has the bytes only after `finish`, and must exist until then.
  virtual void read_later(const std::byte* from, std::byte* to, size_t bytes) {
    read(from, to, bytes);
  }
  // Waits for all kernels and copies that have been launched. Throws if one has failed.
  virtual void finish() {}
  virtual DeviceUse use() const { return {}; }
  CopiedBytes copied() const { return use().copied; }
};

Device& cpu();

// A shared handle of device memory. The memory is freed with its last handle.
class Memory {
 public:
  Memory() = default;
  Memory(Device& device, std::shared_ptr<std::byte> address, size_t bytes)
      : device_(&device), address_(std::move(address)), bytes_(bytes) {}

  explicit operator bool() const { return device_ != nullptr; }
  Device& device() const { return *device_; }
  size_t bytes() const { return bytes_; }
  // For kernels of the device.
  std::byte* address() const { return address_.get(); }
  // CPU access. Throws an internal error for memory of another device.
  std::span<std::byte> host() const;
  std::span<float> floats() const;
  // A part of this memory. Throws an internal error if it is out of range.
  Memory part(size_t offset, size_t bytes) const;

 private:
  Device* device_ = nullptr;
  std::shared_ptr<std::byte> address_;
  size_t bytes_ = 0;
};

}  // namespace artel
