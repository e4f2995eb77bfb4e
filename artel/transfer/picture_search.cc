#include "artel/transfer/picture_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/data/images/image.h"
#include "artel/data/images/resize.h"

namespace artel::transfer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPicturesAtOnce = 64;
constexpr int64_t kMostNeighbours = 64;  // per picture, for grouping
constexpr int kMostRounds = 20;          // of label propagation

void scale_to_length_one(Tensor& vectors) {
  const int64_t width = vectors.shape()[1];
  for (int64_t row = 0; row < vectors.shape()[0]; ++row) {
    const std::span<float> values = vectors.values<float>().subspan(row * width, width);
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    if (squares == 0) continue;
    const auto factor = static_cast<float>(1 / std::sqrt(squares));
    for (float& value : values) value *= factor;
  }
}

// Reads the pictures of one batch in order. `problems` has an entry for each.
Tensor read_batch(ThreadPool& pool, const PictureRules& rules, std::span<const fs::path> files,
                  std::vector<std::string>& problems) {
  const int64_t each = 3 * rules.size * rules.size;
  Tensor batch({static_cast<int64_t>(files.size()), 3, rules.size, rules.size});
  problems.assign(files.size(), "");
  pool.run(static_cast<int64_t>(files.size()), [&](int64_t i) {
    try {
      const data::Image image = prepared_picture(rules, map_file(files[i]));
      std::copy(image.pixels.begin(), image.pixels.end(), batch.values<float>().begin() + i * each);
    } catch (const Error& error) {
      problems[i] = error.what();
    }
  });
  return batch;
}

}  // namespace

data::Image prepared_picture(const PictureRules& rules, const Bytes& file) {
  data::Image image = data::read_picture(file, {3, rules.scaled, rules.scaled});
  const int64_t margin = (rules.scaled - rules.size) / 2;
  if (margin > 0) image = data::window(image, margin, margin, rules.size, rules.size);
  Random unused(0);
  rules.normalise().apply(image, unused);
  return image;
}

PictureVectors embed_pictures(const Base& base, const std::vector<fs::path>& files,
                              const EmbedOptions& options) {
  require(!base.reads_text(), ErrorKind::invalid_argument,
          "[base '{}'] reads text, expected a network for pictures", base.name);
  Predictor features = picture_features(base, options.threads);
  ThreadPool pool(options.threads);
  PictureVectors all;
  std::vector<float> numbers;
  for (size_t begin = 0; begin < files.size(); begin += kPicturesAtOnce) {
    const size_t count = std::min<size_t>(kPicturesAtOnce, files.size() - begin);
    const std::span<const fs::path> part = std::span(files).subspan(begin, count);
    std::vector<std::string> problems;
    const Tensor found = features(read_batch(pool, base.pictures, part, problems));
    const int64_t width = found.elements() / static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i) {
      if (!problems[i].empty()) {
        all.broken.push_back(problems[i]);
        continue;
      }
      all.files.push_back(part[i]);
      const std::span<const float> row = found.values<float>().subspan(i * width, width);
      numbers.insert(numbers.end(), row.begin(), row.end());
    }
    if (options.progress)
      options.progress(static_cast<int64_t>(begin + count), static_cast<int64_t>(files.size()));
  }
  require(!all.files.empty(), ErrorKind::corrupt, "none of {} pictures can be read: {}",
          files.size(), all.broken.empty() ? "" : all.broken.front());
  const auto rows = static_cast<int64_t>(all.files.size());
  all.vectors = Tensor::from<float>({rows, static_cast<int64_t>(numbers.size()) / rows}, numbers);
  if (!base.embeds) scale_to_length_one(all.vectors);
  return all;
}

std::vector<std::vector<int64_t>> group_alike(ThreadPool& pool, const VectorIndex& index,
                                              const Tensor& vectors, float threshold) {
  const int64_t rows = vectors.shape()[0];
  const std::vector<Neighbours> nearest = index.nearest(pool, vectors, kMostNeighbours);
  // Makes the relation symmetric: only one of a pair may have the other among its nearest.
  std::vector<std::map<int64_t, float>> links(rows);
  for (int64_t row = 0; row < rows; ++row)
    for (const Neighbour& other : nearest[row])
      if (other.row != row && other.distance < threshold) {
        links[row][other.row] = other.distance;
        links[other.row][row] = other.distance;
      }
  std::vector<int64_t> label(rows), order(rows);
  std::iota(label.begin(), label.end(), 0);
  std::iota(order.begin(), order.end(), 0);
  Random random(0);
  for (int64_t i = rows - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<int64_t>(random.below(static_cast<uint64_t>(i + 1)))]);
  for (int round = 0, changes = 1; round < kMostRounds && changes > 0; ++round) {
    changes = 0;
    for (const int64_t row : order) {
      std::map<int64_t, double> votes;
      for (const auto& [other, distance] : links[row])
        votes[label[other]] += 1 - double{distance} / threshold;
      const auto winner = std::max_element(votes.begin(), votes.end(),
                                           [](auto& a, auto& b) { return a.second < b.second; });
      if (winner == votes.end() || winner->first == label[row]) continue;
      label[row] = winner->first;
      ++changes;
    }
  }
  std::map<int64_t, std::vector<int64_t>> members;
  for (int64_t row = 0; row < rows; ++row) members[label[row]].push_back(row);
  std::vector<std::vector<int64_t>> groups;
  for (auto& [unused, group] : members) groups.push_back(std::move(group));
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return groups;
}

}  // namespace artel::transfer
