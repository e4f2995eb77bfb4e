#include "artel/observe/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "artel/base/host_name.h"

namespace artel::observe {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}

// TFRecord stores checksums rotated and shifted, so a checksum of a checksum is harmless.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// Protocol-buffer encoding: a tag (field number and wire type), then the value.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string field(uint32_t number, WireType type, std::string_view value) {
  return varint(number << 3 | type).append(value);
}

std::string integer_field(uint32_t number, int64_t value) {
  return field(number, kVarint, varint(static_cast<uint64_t>(value)));
}

std::string double_field(uint32_t number, double value) {
  return field(number, kFixed64, little_endian(std::bit_cast<uint64_t>(value)));
}

std::string float_field(uint32_t number, float value) {
  return field(number, kFixed32, little_endian(std::bit_cast<uint32_t>(value)));
}

std::string bytes_field(uint32_t number, std::string_view value) {
  return field(number, kBytes, varint(value.size()).append(value));
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The process id distinguishes two runs started in the same second.
std::filesystem::path file_name(double time) {
  return fmt::format("events.out.tfevents.{:010.0f}.{}.{}", time, host_name(), ::getpid());
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

std::string tfrecord(std::string_view message) {
  const std::string length = little_endian(static_cast<uint64_t>(message.size()));
  std::string record = length + little_endian(masked_crc(length));
  return record.append(message).append(little_endian(masked_crc(message)));
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
std::string encode_file_version(double wall_time) {
  return double_field(1, wall_time) + bytes_field(3, "brain.Event:2");
}

// SessionLog: status = 1, where START = 1.
std::string encode_start(double wall_time, int64_t step) {
  return double_field(1, wall_time) + integer_field(2, step) + bytes_field(7, integer_field(1, 1));
}

// Summary: repeated value = 1; Value: tag = 1, simple_value = 2.
std::string encode_scalars(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    summary += bytes_field(1, bytes_field(1, name) + float_field(2, static_cast<float>(value)));
  }
  return double_field(1, wall_time) + integer_field(2, step) + bytes_field(5, summary);
}

EventFileWriter::EventFileWriter(const std::filesystem::path& folder, int64_t first_step)
    : file_(folder / file_name(seconds_since_1970())) {
  const double now = seconds_since_1970();
  file_.append(tfrecord(encode_file_version(now)));
  file_.append(tfrecord(encode_start(now, first_step)));
}

void EventFileWriter::write(int64_t step, const Scalars& scalars) {
  file_.append(tfrecord(encode_scalars(seconds_since_1970(), step, scalars)));
}

}  // namespace artel::observe
