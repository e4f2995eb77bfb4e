// Compression for tests of the readers.
#pragma once

#include <zlib.h>

#include <string>

namespace artel {

constexpr int kGzip = 15 + 16, kRawDeflate = -15;  // zlib's windows

// The text as a gzip file, or as the stream that zip archives hold.
inline std::string gzip(const std::string& text, int window = kGzip) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string output(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  deflate(&stream, Z_FINISH);
  output.resize(stream.total_out);
  deflateEnd(&stream);
  return output;
}

}  // namespace artel
