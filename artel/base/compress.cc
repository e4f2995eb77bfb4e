#include "artel/base/compress.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace artel {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr int kRawWindow = -15;

// One zlib stream over some input, ended by the destructor.
class Inflater {
 public:
  Inflater(const Bytes& input, int window) : name_(input.name), left_(input.data) {
    require(inflateInit2(&stream_, window) == Z_OK, ErrorKind::memory, "[{}] cannot start zlib",
            name_);
  }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Appends to `output` until the stream ends; `output` never grows past `max_bytes`.
  void run(std::string& output, uint64_t max_bytes) {
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (stream_.avail_in == 0) feed();
      const size_t used = output.size();
      require(used < max_bytes + 1, ErrorKind::corrupt, "[{}] inflates to more than {} bytes",
              name_, max_bytes);
      output.resize(std::min<uint64_t>(max_bytes + 1, std::max<uint64_t>(used * 2, 1 << 16)));
      const auto room = static_cast<uInt>(
          std::min<uint64_t>(output.size() - used, std::numeric_limits<uInt>::max()));
      stream_.next_out = reinterpret_cast<Bytef*>(output.data() + used);
      stream_.avail_out = room;
      status = inflate(&stream_, Z_NO_FLUSH);
      output.resize(used + room - stream_.avail_out);
      const bool stuck = status == Z_BUF_ERROR && left_.empty();
      require((status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) && !stuck,
              ErrorKind::corrupt, "[{}] offset {}: bad compressed data: {}", name_,
              stream_.total_in,
              stuck         ? "truncated"
              : stream_.msg ? stream_.msg
                            : "unknown reason");
    }
    require(output.size() <= max_bytes, ErrorKind::corrupt, "[{}] inflates to more than {} bytes",
            name_, max_bytes);
  }

  // Prepares for another member after the one that ended; false at the end of the input.
  bool next_member() {
    if (stream_.avail_in == 0) feed();
    return stream_.avail_in > 0 && inflateReset(&stream_) == Z_OK;
  }

 private:
  void feed() {
    const auto part = left_.first(std::min<size_t>(left_.size(), size_t{1} << 30));
    left_ = left_.subspan(part.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));
    stream_.avail_in = static_cast<uInt>(part.size());
  }

  std::string name_;
  std::span<const std::byte> left_;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(const Bytes& bytes) {
  return bytes.data.size() >= 2 && bytes.data[0] == std::byte{0x1f} &&
         bytes.data[1] == std::byte{0x8b};
}

Bytes gunzip(const Bytes& compressed, uint64_t max_bytes) {
  std::string output;
  Inflater inflater(compressed, kGzipWindow);
  do {
    inflater.run(output, max_bytes);
  } while (inflater.next_member());
  return make_bytes(std::move(output), compressed.name);
}

Bytes inflate_raw(const Bytes& compressed, uint64_t size) {
  std::string output;
  Inflater(compressed, kRawWindow).run(output, size);
  require(output.size() == size, ErrorKind::corrupt, "[{}] inflates to {} bytes, expected {}",
          compressed.name, output.size(), size);
  return make_bytes(std::move(output), compressed.name);
}

Bytes map_or_gunzip(const std::filesystem::path& path, uint64_t max_bytes) {
  Bytes bytes = map_file(path);
  return is_gzip(bytes) ? gunzip(bytes, max_bytes) : bytes;
}

}  // namespace artel
