// Event files for TensorBoard: scalars, histograms, pictures, and texts over time.
//
// An event file is a sequence of TFRecords. Each is framed by its length and checksums and holds
// one small protocol-buffer message. The few required fields are encoded here without a library.
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

// CRC-32C (Castagnoli), as used by iSCSI and TFRecord.
uint32_t crc32c(std::string_view bytes);

// Frames a message as a record.
std::string tfrecord(std::string_view message);

// Encodes the messages of an event file. `wall_time` is in seconds since 1970.
std::string encode_file_version(double wall_time);
// Marks the start or restart of a run before `step`. Viewers drop data that an interrupted run
// wrote for this and later steps.
std::string encode_start(double wall_time, int64_t step);
std::string encode_scalars(double wall_time, int64_t step, const Scalars& scalars);
std::string encode_histogram(double wall_time, int64_t step, std::string_view name,
                             const Histogram& histogram);
std::string encode_picture(double wall_time, int64_t step, std::string_view name,
                           const PngPicture& picture);
// Viewers render the text as Markdown.
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
