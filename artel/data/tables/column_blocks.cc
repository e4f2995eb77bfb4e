#include "artel/data/tables/column_blocks.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "artel/base/error.h"

namespace artel::data {
namespace {

struct Entry {
  uint64_t feature;
  uint32_t row;
  float value;
};

// A file that is written sequentially, or read and written at given offsets.
class EntryFile {
 public:
  explicit EntryFile(std::FILE* file, const std::filesystem::path& path)
      : path_(path), file_(file) {
    require(file != nullptr, ErrorKind::io, "[{}] cannot be written: {}", path.string(),
            std::strerror(errno));
  }

  // `data` may be null if there are no bytes.
  void write(const void* data, size_t bytes) {
    require(bytes == 0 || std::fwrite(data, 1, bytes, file_.get()) == bytes, ErrorKind::io,
            "[{}] cannot be written: {}", path_.string(), std::strerror(errno));
  }
  // A full disk may show only now; a map of what is not there would end the process.
  void finish() {
    require(std::fflush(file_.get()) == 0, ErrorKind::io, "[{}] cannot be written: {}",
            path_.string(), std::strerror(errno));
  }
  void read(void* data, size_t bytes) {
    require(bytes == 0 || std::fread(data, 1, bytes, file_.get()) == bytes, ErrorKind::io,
            "[{}] cannot be read: {}", path_.string(), std::strerror(errno));
  }
  void seek(uint64_t offset) {
    require(fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) == 0, ErrorKind::io,
            "[{}] cannot be read: {}", path_.string(), std::strerror(errno));
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// Reorders entries from row order to block order: each block has its part of the file, and a buffer
// that is written there when full.
class Sorter {
 public:
  Sorter(std::vector<uint64_t> sizes, const std::filesystem::path& path)
      : file_(std::fopen(path.c_str(), "w+b"), path),
        sizes_(std::move(sizes)),
        buffers_(sizes_.size()) {
    std::filesystem::remove(path);  // it exists until it is closed
    uint64_t next = 0;
    for (const uint64_t size : sizes_) {
      starts_.push_back(next);
      next += size;
    }
    written_.assign(sizes_.size(), 0);
  }

  void add(size_t block, const Entry& entry) {
    buffers_[block].push_back(entry);
    if (buffers_[block].size() >= kBuffered) flush(block);
  }

  std::vector<Entry> take(size_t block) {
    flush(block);
    std::vector<Entry> entries(sizes_[block]);
    file_.seek(starts_[block] * sizeof(Entry));
    file_.read(entries.data(), entries.size() * sizeof(Entry));
    return entries;
  }

 private:
  static constexpr size_t kBuffered = 4096;

  void flush(size_t block) {
    std::vector<Entry>& buffer = buffers_[block];
    if (buffer.empty()) return;
    file_.seek((starts_[block] + written_[block]) * sizeof(Entry));
    file_.write(buffer.data(), buffer.size() * sizeof(Entry));
    written_[block] += buffer.size();
    buffer.clear();
  }

  EntryFile file_;
  std::vector<uint64_t> sizes_, starts_, written_;
  std::vector<std::vector<Entry>> buffers_;
};

template <typename T>
void write_padded(EntryFile& file, const std::vector<T>& items) {
  static constexpr char kZeros[8] = {};
  file.write(items.data(), items.size() * sizeof(T));
  file.write(kZeros, (8 - items.size() * sizeof(T) % 8) % 8);
}

template <typename T>
std::span<const T> view(const std::byte*& at, size_t count) {
  const std::span<const T> items(reinterpret_cast<const T*>(at), count);
  at += (items.size_bytes() + 7) / 8 * 8;
  return items;
}

}  // namespace

ColumnBlocks::ColumnBlocks(const SparseRows& file, int64_t first, int64_t last,
                           std::vector<uint64_t> cuts, const std::filesystem::path& path,
                           std::optional<uint64_t> constant) {
  require(last - first <= int64_t{1} << 32, ErrorKind::unsupported,
          "[{}] {} rows for one worker, expected at most 2^32; try more workers", path.string(),
          last - first);
  const auto block_of = [&](uint64_t feature) {
    return static_cast<size_t>(std::upper_bound(cuts.begin(), cuts.end(), feature) - cuts.begin()) -
           1;
  };
  SparseSample sample;
  const auto for_each = [&](auto&& visit) {
    for (int64_t row = first; row < last; ++row) {
      file.read(row, sample);
      const auto place = static_cast<uint32_t>(row - first);
      for (size_t i = 0; i < sample.features.size(); ++i) {
        const auto feature = static_cast<uint64_t>(sample.features[i]);
        if (feature < cuts.back() && sample.values[i] != 0)
          visit(Entry{feature, place, sample.values[i]});
      }
      if (constant) visit(Entry{*constant, place, 1});
    }
  };
  std::vector<uint64_t> sizes(cuts.size() - 1, 0);
  for_each([&](const Entry& entry) { ++sizes[block_of(entry.feature)]; });
  Sorter sorter(sizes, path.string() + ".rows");
  for_each([&](const Entry& entry) { sorter.add(block_of(entry.feature), entry); });
  targets_.reserve(static_cast<size_t>(last - first));
  for (int64_t row = first; row < last; ++row) {
    file.read(row, sample);
    targets_.push_back(sample.target);
  }

  std::vector<size_t> distinct;
  {
    EntryFile out(std::fopen(path.c_str(), "wb"), path);
    for (size_t block = 0; block < sizes.size(); ++block) {
      std::vector<Entry> entries = sorter.take(block);
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Entry& a, const Entry& b) { return a.feature < b.feature; });
      std::vector<uint64_t> features, starts;
      std::vector<uint32_t> rows;
      std::vector<float> values;
      for (const Entry& entry : entries) {
        if (features.empty() || features.back() != entry.feature) {
          features.push_back(entry.feature);
          starts.push_back(rows.size());
        }
        rows.push_back(entry.row);
        values.push_back(entry.value);
      }
      starts.push_back(rows.size());
      distinct.push_back(features.size());
      write_padded(out, features);
      write_padded(out, starts);
      write_padded(out, rows);
      write_padded(out, values);
    }
    out.finish();
  }
  file_.emplace(path);
  const std::byte* at = file_->bytes().data();
  for (size_t block = 0; block < sizes.size(); ++block) {
    ColumnBlock views;
    views.features = view<uint64_t>(at, distinct[block]);
    views.starts = view<uint64_t>(at, distinct[block] + 1);
    views.rows = view<uint32_t>(at, sizes[block]);
    views.values = view<float>(at, sizes[block]);
    blocks_.push_back(views);
  }
}

std::vector<uint64_t> balanced_cuts(const SparseRows& file, int blocks) {
  constexpr int64_t kRows = 10'000;
  const auto features = static_cast<uint64_t>(file.features()) + 1;
  const auto count = std::min<uint64_t>(static_cast<uint64_t>(blocks), features);
  std::vector<uint64_t> seen;
  SparseSample sample;
  const int64_t rows = std::min(kRows, file.size());
  for (int64_t i = 0; i < rows; ++i) {
    file.read(file.size() * i / rows, sample);
    seen.insert(seen.end(), sample.features.begin(), sample.features.end());
    seen.push_back(features - 1);
  }
  std::sort(seen.begin(), seen.end());
  std::vector<uint64_t> cuts = {0};
  for (uint64_t block = 1; block < count; ++block) {
    const uint64_t even = seen.empty() ? block : seen[seen.size() * block / count];
    cuts.push_back(std::clamp(even, cuts.back() + 1, features - (count - block)));
  }
  cuts.push_back(features);
  return cuts;
}

}  // namespace artel::data
