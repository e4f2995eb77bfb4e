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

// TFRecord masks checksums, because the CRC of data that contains its own CRC is weak.
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

std::string doubles_field(uint32_t number, const std::vector<double>& values) {
  std::string packed;
  for (const double value : values) packed += little_endian(std::bit_cast<uint64_t>(value));
  return bytes_field(number, packed);
}

std::string encode_summary(double wall_time, int64_t step, std::string_view summary) {
  return double_field(1, wall_time) + integer_field(2, step) + bytes_field(5, summary);
}

// A summary with one value: its name and `content`.
std::string encode_value(double wall_time, int64_t step, std::string_view name,
                         std::string_view content) {
  return encode_summary(wall_time, step, bytes_field(1, bytes_field(1, name).append(content)));
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

// Summary: repeated value = 1; Value: tag = 1, simple_value = 2, image = 4, histo = 5, tensor = 8,
// metadata = 9.
std::string encode_scalars(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    summary += bytes_field(1, bytes_field(1, name) + float_field(2, static_cast<float>(value)));
  }
  return encode_summary(wall_time, step, summary);
}

// HistogramProto: min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, and packed bucket_limit = 6
// and bucket = 7.
std::string encode_histogram(double wall_time, int64_t step, std::string_view name,
                             const Histogram& histogram) {
  const std::string message = double_field(1, histogram.min) + double_field(2, histogram.max) +
                              double_field(3, histogram.count) + double_field(4, histogram.sum) +
                              double_field(5, histogram.squares) +
                              doubles_field(6, histogram.limits) +
                              doubles_field(7, histogram.counts);
  return encode_value(wall_time, step, name, bytes_field(5, message));
}

// Image: height = 1, width = 2, colorspace = 3 (the number of channels), encoded_image_string = 4.
std::string encode_picture(double wall_time, int64_t step, std::string_view name,
                           const PngPicture& picture) {
  const std::string message = integer_field(1, picture.height) + integer_field(2, picture.width) +
                              integer_field(3, picture.channels) + bytes_field(4, picture.bytes);
  return encode_value(wall_time, step, name, bytes_field(4, message));
}

// TensorProto: dtype = 1 (7 is a string), tensor_shape = 2 (none: a single one), string_val = 8.
// SummaryMetadata: plugin_data = 1 with plugin_name = 1, data_class = 4 (2 is a tensor).
std::string encode_text(double wall_time, int64_t step, std::string_view name,
                        std::string_view text) {
  constexpr int64_t kString = 7, kTensor = 2;
  const std::string tensor = integer_field(1, kString) + bytes_field(2, "") + bytes_field(8, text);
  const std::string metadata = bytes_field(1, bytes_field(1, "text")) + integer_field(4, kTensor);
  return encode_value(wall_time, step, name, bytes_field(8, tensor) + bytes_field(9, metadata));
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

void EventFileWriter::write(int64_t step, std::string_view name, const Histogram& histogram) {
  file_.append(tfrecord(encode_histogram(seconds_since_1970(), step, name, histogram)));
}

void EventFileWriter::write(int64_t step, std::string_view name, const PngPicture& picture) {
  file_.append(tfrecord(encode_picture(seconds_since_1970(), step, name, picture)));
}

void EventFileWriter::write_text(int64_t step, std::string_view name, std::string_view text) {
  file_.append(tfrecord(encode_text(seconds_since_1970(), step, name, text)));
}

}  // namespace artel::observe
