#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "artel/data/images/decode.h"

namespace artel::data {
namespace {

// Owns libpng's memory and the position in the file. libpng reports errors through a function that
// must not return; this one jumps back to the caller.
struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;
  char message[128] = "";

  explicit PngReader(std::span<const std::byte> data)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, jump, keep_quiet)), rest(data) {
    if (png) info = png_create_info_struct(png);
    require(info != nullptr, ErrorKind::memory, "libpng cannot be set up");
    png_set_read_fn(png, this, take);
  }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  static void jump(png_structp png, const char* text) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader->message, sizeof reader->message, "%s", text);
    png_longjmp(png, 1);
  }
  static void keep_quiet(png_structp, const char*) {}
  static void take(png_structp png, png_bytep to, size_t size) {
    auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > reader->rest.size()) png_error(png, "the file ends too early");
    std::memcpy(to, reader->rest.data(), size);
    reader->rest = reader->rest.subspan(size);
  }

  // None of these functions has locals with destructors, which the jump would skip.
  bool read_header() {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_info(png, info);
    return true;
  }
  // Asks for 8 bits per sample, and for alpha where the file has any transparency.
  bool set_format() {
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }
  bool read_rows(std::vector<png_bytep>& rows) {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);  // verifies the checksum
    return true;
  }
};

void open(PngReader& reader, const Bytes& bytes) {
  require(reader.read_header(), ErrorKind::corrupt, "[{}] bad PNG header: {}", bytes.name,
          reader.message);
  check_size(bytes, png_get_image_height(reader.png, reader.info),
             png_get_image_width(reader.png, reader.info));
}

// sample * alpha + white * (1 - alpha), rounded.
uint8_t on_white(int sample, int alpha) {
  const int sum = sample * alpha + 255 * (255 - alpha) + 128;
  return static_cast<uint8_t>((sum + (sum >> 8)) >> 8);
}

// JPEG's luminance, with its 16-bit constants.
uint8_t grey_of(int red, int green, int blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

// Converts 1 to 4 samples per pixel (grey or colour, with alpha if even) to 1 or 3.
Picture converted(const Picture& from, int channels) {
  Picture to{from.height, from.width, channels, {}};
  to.samples.resize(static_cast<size_t>(to.height * to.width * channels));
  const int64_t colours = from.channels >= 3 ? 3 : 1;
  const uint8_t* source = from.samples.data();
  uint8_t* target = to.samples.data();
  for (int64_t i = 0; i < to.height * to.width; ++i, source += from.channels) {
    uint8_t pixel[3];
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t sample = source[std::min(c, colours - 1)];
      pixel[c] = from.channels > colours ? on_white(sample, source[colours]) : sample;
    }
    if (channels == 1 && colours == 3) pixel[0] = grey_of(pixel[0], pixel[1], pixel[2]);
    target = std::copy_n(pixel, channels, target);
  }
  return to;
}

}  // namespace

PictureSize png_size(const Bytes& bytes) {
  PngReader reader(bytes.data);
  open(reader, bytes);
  return {png_get_image_height(reader.png, reader.info),
          png_get_image_width(reader.png, reader.info)};
}

Picture decode_png(const Bytes& bytes, int channels) {
  PngReader reader(bytes.data);
  open(reader, bytes);
  const auto check = [&](bool good) {
    require(good, ErrorKind::corrupt, "[{}] bad PNG data: {}", bytes.name, reader.message);
  };
  check(reader.set_format());
  Picture picture{png_get_image_height(reader.png, reader.info),
                  png_get_image_width(reader.png, reader.info),
                  png_get_channels(reader.png, reader.info),
                  {}};
  const auto row = static_cast<size_t>(picture.width * picture.channels);
  picture.samples.resize(static_cast<size_t>(picture.height) * row);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < picture.height; ++y)
    rows.push_back(picture.samples.data() + static_cast<size_t>(y) * row);
  check(reader.read_rows(rows));
  if (channels == 0) channels = picture.channels >= 3 ? 3 : 1;
  if (picture.channels == channels) return picture;
  return converted(picture, channels);
}

}  // namespace artel::data
