#include "artel/data/image.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>  // needs FILE from <cstdio>

#include "artel/data/resize.h"

namespace artel::data {
namespace {

// Neither format packs more pixels into a byte: deflate reaches 1032:1 on one-bit pixels.
constexpr int64_t kMaxPixelsOfByte = 1032 * 8;

void check_size(const Bytes& bytes, int64_t height, int64_t width) {
  const auto possible = kMaxPixelsOfByte * static_cast<int64_t>(bytes.data.size());
  require(height > 0 && width > 0 && height <= kMaxSide && width <= kMaxSide &&
              height * width <= std::min(kMaxPixels, possible),
          ErrorKind::corrupt,
          "[{}] a picture of {} x {} pixels in {} bytes; at most {} are allowed", bytes.name, width,
          height, bytes.data.size(), kMaxPixels);
}

// libjpeg reports errors by a function that must not return: this one jumps back to the caller.
struct JpegError {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";

  static void jump(j_common_ptr info) {
    auto* error = reinterpret_cast<JpegError*>(info->err);
    info->err->format_message(info, error->message);
    std::longjmp(error->back, 1);
  }
  static void keep_quiet(j_common_ptr, int) {}
};

// Owns libjpeg's memory.
struct JpegReader {
  jpeg_decompress_struct info{};
  JpegError error;

  JpegReader() {
    info.err = jpeg_std_error(&error.manager);
    error.manager.error_exit = JpegError::jump;
    error.manager.emit_message = JpegError::keep_quiet;
    jpeg_create_decompress(&info);
  }
  JpegReader(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info); }

  // Neither of the next two functions has locals with destructors, which the jump would skip.
  bool read_header(std::span<const std::byte> data) {
    if (setjmp(error.back)) return false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(data.data()),
                 static_cast<unsigned long>(data.size()));
    return jpeg_read_header(&info, TRUE) == JPEG_HEADER_OK;
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

// The largest of 1, 2, 4 and 8 that leaves both sides at `least_side` or more.
unsigned shrink_factor(int64_t height, int64_t width, int64_t least_side) {
  unsigned factor = 1;
  while (least_side > 0 && factor < 8 && std::min(height, width) / (2 * factor) >= least_side)
    factor *= 2;
  return factor;
}

Picture decode_jpeg(const Bytes& bytes, int channels, int64_t least_side) {
  JpegReader reader;
  jpeg_decompress_struct& info = reader.info;
  require(reader.read_header(bytes.data), ErrorKind::corrupt, "[{}] bad JPEG header: {}",
          bytes.name, reader.error.message);
  check_size(bytes, info.image_height, info.image_width);
  require(info.num_components == 1 || info.num_components == 3, ErrorKind::unsupported,
          "[{}] a JPEG picture of {} components, expected grey or colour", bytes.name,
          info.num_components);
  if (channels == 0) channels = info.num_components;
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = shrink_factor(info.image_height, info.image_width, least_side);
  jpeg_calc_output_dimensions(&info);
  Picture picture{info.output_height, info.output_width, channels, {}};
  picture.samples.resize(static_cast<size_t>(picture.height * picture.width * channels));
  require(reader.read_rows(picture), ErrorKind::corrupt, "[{}] bad JPEG data: {}", bytes.name,
          reader.error.message);
  return picture;
}

// Frees what libpng keeps between the two steps of reading.
struct PngReader {
  png_image image{};
  PngReader() { image.version = PNG_IMAGE_VERSION; }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_image_free(&image); }
};

Picture decode_png(const Bytes& bytes, int channels) {
  PngReader reader;
  png_image& image = reader.image;
  require(png_image_begin_read_from_memory(&image, bytes.data.data(), bytes.data.size()),
          ErrorKind::corrupt, "[{}] bad PNG header: {}", bytes.name, image.message);
  check_size(bytes, image.height, image.width);
  if (channels == 0) channels = image.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Picture picture{image.height, image.width, channels, {}};
  picture.samples.resize(static_cast<size_t>(picture.height * picture.width * channels));
  const png_color white = {255, 255, 255};
  require(png_image_finish_read(&image, &white, picture.samples.data(), 0, nullptr),
          ErrorKind::corrupt, "[{}] bad PNG data: {}", bytes.name, image.message);
  return picture;
}

}  // namespace

bool is_jpeg(const Bytes& bytes) { return bytes.text().starts_with("\xff\xd8\xff"); }

bool is_png(const Bytes& bytes) { return bytes.text().starts_with("\x89PNG\r\n\x1a\n"); }

Picture decode_picture(const Bytes& bytes, int channels, int64_t least_side) {
  require(channels == 0 || channels == 1 || channels == 3, ErrorKind::invalid_argument,
          "pictures have 1 or 3 channels, not {}", channels);
  if (is_jpeg(bytes)) return decode_jpeg(bytes, channels, least_side);
  if (is_png(bytes)) return decode_png(bytes, channels);
  fail(ErrorKind::corrupt, "[{}] offset 0: neither a JPEG nor a PNG picture", bytes.name);
}

Image to_image(const Picture& picture) {
  Image image(picture.channels, picture.height, picture.width);
  const int64_t plane = picture.height * picture.width;
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t i = 0; i < plane; ++i)
      image.pixels[c * plane + i] =
          static_cast<float>(picture.samples[i * picture.channels + c]) * (1.0f / 255.0f);
  return image;
}

}  // namespace artel::data
