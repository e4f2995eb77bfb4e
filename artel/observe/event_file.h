// What TensorBoard reads: scalars, histograms, pictures and texts over time.
//
// An event file is a sequence of records, each framed by its length and checksums (TFRecord), each
// holding one small protocol-buffer message. The few fields that these need are encoded here, so no
// library is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artel/base/appended_file.h"
#include "artel/observe/histogram.h"

namespace artel::observe {

using Scalars = std::vector<std::pair<std::string, double>>;

// A picture as the bytes of a PNG file.
struct PngPicture {
  int64_t width = 0, height = 0;
  int channels = 3;
  std::string bytes;
};

// CRC-32C (Castagnoli), as iSCSI and TFRecord use it.
uint32_t crc32c(std::string_view bytes);

// A message framed as a record.
std::string tfrecord(std::string_view message);

// The messages of an event file. `wall_time` is in seconds since 1970.
std::string encode_file_version(double wall_time);
// Marks the (re)start of a run before `step`: a viewer drops what an earlier, interrupted run wrote
// for this and later steps.
std::string encode_start(double wall_time, int64_t step);
std::string encode_scalars(double wall_time, int64_t step, const Scalars& scalars);
std::string encode_histogram(double wall_time, int64_t step, std::string_view name,
                             const Histogram& histogram);
std::string encode_picture(double wall_time, int64_t step, std::string_view name,
                           const PngPicture& picture);
// A viewer takes the text for Markdown.
std::string encode_text(double wall_time, int64_t step, std::string_view name,
                        std::string_view text);

// Writes a new file events.out.tfevents.<time>.<host> in an existing folder.
class EventFileWriter {
 public:
  EventFileWriter(const std::filesystem::path& folder, int64_t first_step);

  void write(int64_t step, const Scalars& scalars);
  void write(int64_t step, std::string_view name, const Histogram& histogram);
  void write(int64_t step, std::string_view name, const PngPicture& picture);
  void write_text(int64_t step, std::string_view name, std::string_view text);
  void flush() { file_.flush(); }

 private:
  AppendedFile file_;
};

}  // namespace artel::observe
