// Small pictures for tests of the readers.
#pragma once

#include <cstdio>

#include <jpeglib.h>  // needs FILE from <cstdio>
#include <png.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace artel {

// Interleaved samples as a PNG file: grey, grey and alpha, colour, or colour and alpha.
inline std::string png(int height, int width, int channels, const std::vector<uint8_t>& samples) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                      PNG_FORMAT_RGBA};
  image.format = kFormats[channels - 1];
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, samples.data(), 0, nullptr);
  std::string file(size, '\0');
  png_image_write_to_memory(&image, file.data(), &size, 0, samples.data(), 0, nullptr);
  file.resize(size);
  return file;
}

// Interleaved samples as a JPEG file of the best quality; four channels are inks, inverted as Adobe
// writes them.
inline std::string jpeg(int height, int width, int channels, const std::vector<uint8_t>& samples) {
  jpeg_compress_struct info{};
  jpeg_error_mgr error;
  info.err = jpeg_std_error(&error);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(samples.data() + info.next_scanline * width * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(data), size);
  std::free(data);
  return file;
}

}  // namespace artel
