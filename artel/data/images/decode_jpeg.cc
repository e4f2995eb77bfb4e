#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>  // needs FILE from <cstdio>

#include <jerror.h>  // needs jpeglib.h

#include "artel/data/images/decode.h"
#include "artel/data/images/orientation.h"

namespace artel::data {
namespace {

// libjpeg reports errors through a function that must not return; this one jumps back to the
// caller.
struct JpegError {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";

  static void jump(j_common_ptr info) {
    auto* error = reinterpret_cast<JpegError*>(info->err);
    info->err->format_message(info, error->message);
    std::longjmp(error->back, 1);
  }
  // Treats libjpeg's warnings as errors, because it fills damaged parts with grey. Header warnings
  // are ignored.
  static void refuse_damage(j_common_ptr info, int level) {
    const int code = info->err->msg_code;
    const bool about_header = code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
                              code == JWRN_NOT_SEQUENTIAL || code == JWRN_BOGUS_ICC;
    if (level < 0 && !about_header) jump(info);
  }
};

// Each scan of a progressive picture costs time for all of its pixels, however few bytes it has.
constexpr int kUsualScans = 16;
constexpr int64_t kMostScannedPixels = int64_t{1} << 31;

void limit_scans(j_common_ptr common) {
  const auto* info = reinterpret_cast<j_decompress_ptr>(common);
  const int64_t pixels = int64_t{info->image_height} * int64_t{info->image_width};
  if (info->input_scan_number <= kUsualScans ||
      info->input_scan_number * pixels <= kMostScannedPixels)
    return;
  auto* error = reinterpret_cast<JpegError*>(info->err);
  std::snprintf(error->message, sizeof error->message, "more than %d scans of %lld pixels",
                info->input_scan_number - 1, static_cast<long long>(pixels));
  std::longjmp(error->back, 1);
}

constexpr int kExifMarker = JPEG_APP0 + 1;

// Owns libjpeg's memory.
struct JpegReader {
  jpeg_decompress_struct info{};
  JpegError error;
  jpeg_progress_mgr progress{};

  JpegReader() {
    info.err = jpeg_std_error(&error.manager);
    error.manager.error_exit = JpegError::jump;
    error.manager.emit_message = JpegError::refuse_damage;
    jpeg_create_decompress(&info);
    progress.progress_monitor = limit_scans;
    info.progress = &progress;
  }
  JpegReader(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info); }

  // Neither this function nor read_rows has locals with destructors, which the jump would skip.
  bool read_header(std::span<const std::byte> data) {
    if (setjmp(error.back)) return false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(data.data()),
                 static_cast<unsigned long>(data.size()));
    jpeg_save_markers(&info, kExifMarker, 0xffff);
    return jpeg_read_header(&info, TRUE) == JPEG_HEADER_OK;
  }
  // Before the rows are read.
  int orientation() const {
    for (auto marker = info.marker_list; marker; marker = marker->next) {
      const int found =
          exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
      if (found != kUpright) return found;
    }
    return kUpright;
  }
  bool read_rows(Picture& picture) {
    if (setjmp(error.back)) return false;
    jpeg_start_decompress(&info);
    const size_t row = static_cast<size_t>(picture.width * picture.channels);
    while (info.output_scanline < info.output_height) {
      JSAMPROW target = picture.samples.data() + row * info.output_scanline;
      jpeg_read_scanlines(&info, &target, 1);
    }
    return jpeg_finish_decompress(&info);
  }
};

// Inks as colours, without a colour profile. Files that Adobe marks have the inks inverted.
Picture from_inks(const Picture& inks, bool inverted, int channels) {
  Picture picture{inks.height, inks.width, channels, {}};
  picture.samples.resize(static_cast<size_t>(inks.height * inks.width * channels));
  const auto lit = [&](size_t at) { return inverted ? inks.samples[at] : 255 - inks.samples[at]; };
  for (size_t pixel = 0; pixel < picture.samples.size() / static_cast<size_t>(channels); ++pixel) {
    std::array<int, 3> colour{};
    for (size_t c = 0; c < 3; ++c)
      colour[c] = (lit(4 * pixel + c) * lit(4 * pixel + 3) + 127) / 255;
    if (channels == 1)  // as libjpeg weighs them
      picture.samples[pixel] =
          static_cast<uint8_t>((299 * colour[0] + 587 * colour[1] + 114 * colour[2] + 500) / 1000);
    else
      for (size_t c = 0; c < 3; ++c)
        picture.samples[3 * pixel + c] = static_cast<uint8_t>(colour[c]);
  }
  return picture;
}

// The largest of 1, 2, 4 and 8 that leaves both sides at `least_side` or more.
unsigned shrink_factor(int64_t height, int64_t width, int64_t least_side) {
  unsigned factor = 1;
  while (least_side > 0 && factor < 8 && std::min(height, width) / (2 * factor) >= least_side)
    factor *= 2;
  return factor;
}

void open(JpegReader& reader, const Bytes& bytes) {
  require(reader.read_header(bytes.data), ErrorKind::corrupt, "[{}] bad JPEG header: {}",
          bytes.name, reader.error.message);
  check_size(bytes, reader.info.image_height, reader.info.image_width);
}

}  // namespace

PictureSize jpeg_size(const Bytes& bytes) {
  JpegReader reader;
  open(reader, bytes);
  const PictureSize stored = {reader.info.image_height, reader.info.image_width};
  return swaps_sides(reader.orientation()) ? PictureSize{stored.width, stored.height} : stored;
}

Picture decode_jpeg(const Bytes& bytes, int channels, int64_t least_side) {
  JpegReader reader;
  jpeg_decompress_struct& info = reader.info;
  open(reader, bytes);
  const bool of_inks = info.num_components == 4;
  require(info.num_components == 1 || info.num_components == 3 || of_inks, ErrorKind::unsupported,
          "[{}] a JPEG picture of {} components, expected grey, colour or CMYK", bytes.name,
          info.num_components);
  const int orientation = reader.orientation();
  if (channels == 0) channels = of_inks ? 3 : info.num_components;
  info.out_color_space = of_inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = shrink_factor(info.image_height, info.image_width, least_side);
  jpeg_calc_output_dimensions(&info);
  Picture picture{info.output_height, info.output_width, of_inks ? 4 : channels, {}};
  picture.samples.resize(static_cast<size_t>(picture.height * picture.width * picture.channels));
  require(reader.read_rows(picture), ErrorKind::corrupt,
          "[{}] bad JPEG data: {}; delete the file, or save it again", bytes.name,
          reader.error.message);
  if (of_inks) picture = from_inks(picture, info.saw_Adobe_marker, channels);
  return turned_upright(std::move(picture), orientation);
}

}  // namespace artel::data
