#include "artel/base/compress.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "artel/base/checksum.h"
namespace artel {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr int kRawWindow = -15;
constexpr size_t kLeastRoom = 1 << 16;  // bytes of output buffer

// One zlib stream over some input, ended by the destructor.
class Inflater {
 public:
  Inflater(const Bytes& input, int window)
      : name_(input.name), left_(input.data), gzip_(window == kGzipWindow) {
    require(inflateInit2(&stream_, window) == Z_OK, ErrorKind::memory, "[{}] cannot start zlib",
            name_);
  }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Appends to the output until the stream ends or the output has `most` bytes. Returns false in
  // the latter case. The next gzip member reuses the remaining room.
  bool run(uint64_t most) {
    while (used_ < most) {
      if (used_ == output_.size())
        output_.resize(std::min<uint64_t>(most, std::max<uint64_t>(used_ * 2, kLeastRoom)));
      used_ += next(std::as_writable_bytes(std::span(output_)).subspan(used_));
      if (ended_) return true;
    }
    return ended_;
  }

  std::string take_output() {
    output_.resize(std::exchange(used_, 0));
    return std::exchange(output_, {});
  }

  // Inflates the rest and discards it. Stops beyond `most` bytes.
  struct Measure {
    uint64_t bytes = 0;
    uint32_t checksum = 0;
  };
  Measure measure(uint64_t most) {
    Measure measure;
    std::vector<std::byte> scratch(kLeastRoom);
    while (measure.bytes <= most && !(ended_ && !next_member())) {
      const size_t made = next(scratch);
      measure.bytes += made;
      measure.checksum = crc32(std::span(scratch).first(made), measure.checksum);
    }
    return measure;
  }

  // Starts the next gzip member. Returns false at the end of the input.
  bool next_member() {
    if (stream_.avail_in == 0) feed();
    if (!gzip_ || stream_.avail_in == 0 || inflateReset(&stream_) != Z_OK) return false;
    ended_ = false;
    return true;
  }

 private:
  // Inflates the current member into the room. Returns the number of bytes produced.
  size_t next(std::span<std::byte> room) {
    room = room.first(std::min<size_t>(room.size(), std::numeric_limits<uInt>::max()));
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(room.size());
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0) feed();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      ended_ = status == Z_STREAM_END;
      const bool stuck = status == Z_BUF_ERROR && left_.empty();
      require((status == Z_OK || ended_ || status == Z_BUF_ERROR) && !stuck, ErrorKind::corrupt,
              "[{}] offset {}: bad compressed data: {}", name_, stream_.total_in,
              stuck         ? "truncated"
              : stream_.msg ? stream_.msg
                            : "unknown reason");
    }
    return room.size() - stream_.avail_out;
  }

  void feed() {
    const auto part = left_.first(std::min<size_t>(left_.size(), size_t{1} << 30));
    left_ = left_.subspan(part.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));
    stream_.avail_in = static_cast<uInt>(part.size());
  }

  std::string name_;
  std::span<const std::byte> left_;
  bool gzip_;
  bool ended_ = false;
  std::string output_;
  size_t used_ = 0;  // bytes of output_
  z_stream stream_{};
};

// Outputs up to this size are inflated in one pass; few files are larger.
uint64_t plausible(const Bytes& compressed) { return kLeastRoom + 16 * compressed.data.size(); }

}  // namespace

bool is_gzip(const Bytes& bytes) {
  return bytes.data.size() >= 2 && bytes.data[0] == std::byte{0x1f} &&
         bytes.data[1] == std::byte{0x8b};
}

Bytes gunzip(const Bytes& compressed, uint64_t max_bytes) {
  Inflater inflater(compressed, kGzipWindow);
  uint64_t most = std::min(plausible(compressed), max_bytes);
  do {
    while (!inflater.run(most)) {
      const uint64_t bytes = Inflater(compressed, kGzipWindow).measure(max_bytes).bytes;
      require(bytes <= max_bytes, ErrorKind::corrupt, "[{}] inflates to more than {} bytes",
              compressed.name, max_bytes);
      most = bytes + 1;
    }
  } while (inflater.next_member());
  return make_bytes(inflater.take_output(), compressed.name);
}

Bytes inflate_raw(const Bytes& compressed, uint64_t size, uint32_t checksum) {
  const auto check = [&](uint64_t bytes, uint32_t found) {
    require(bytes == size, ErrorKind::corrupt, "[{}] inflates to {}{} bytes, expected {}",
            compressed.name, bytes > size ? "more than " : "", std::min(bytes, size), size);
    check_crc32(found, checksum, compressed.name);
  };
  if (size > plausible(compressed)) {
    const auto [bytes, found] = Inflater(compressed, kRawWindow).measure(size);
    check(bytes, found);
  }
  Inflater inflater(compressed, kRawWindow);
  inflater.run(size + 1);
  std::string output = inflater.take_output();
  check(output.size(), crc32(std::as_bytes(std::span(output))));
  return make_bytes(std::move(output), compressed.name);
}

Bytes inflate_start(const Bytes& compressed, uint64_t size) {
  Inflater inflater(compressed, kRawWindow);
  inflater.run(size);
  return make_bytes(inflater.take_output(), compressed.name);
}

Bytes map_or_gunzip(const std::filesystem::path& path, uint64_t max_bytes) {
  Bytes bytes = map_file(path);
  return is_gzip(bytes) ? gunzip(bytes, max_bytes) : bytes;
}

}  // namespace artel
