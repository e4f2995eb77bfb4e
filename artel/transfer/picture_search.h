// Finds pictures of the same subject, such as a person, by their features.
//
//   const artel::transfer::Base base = artel::transfer::load_base("faces");
//   artel::transfer::PictureVectors all = artel::transfer::embed_pictures(base, files, {});
//   for (const auto& group : artel::transfer::group_alike(*index, all.vectors, 0.6f)) ...
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/transfer/bases.h"
#include "artel/transfer/vector_index.h"

namespace artel::transfer {

// Feature vectors of pictures. They have length 1, except those of embedding networks, whose
// distances are meaningful.
struct PictureVectors {
  std::vector<std::filesystem::path> files;  // readable files
  Tensor vectors;                            // [files, width]
  std::vector<std::string> broken;           // errors of the unreadable files
};

struct EmbedOptions {
  int threads = 1;
  std::function<void(int64_t done, int64_t all)> progress = {};
};

// Keeps the order of the files. Throws if none can be read, with the first error.
PictureVectors embed_pictures(const Base& base, const std::vector<std::filesystem::path>& files,
                              const EmbedOptions& options);

// Decodes, scales, crops, and normalises a picture for a base: [3, size, size].
data::Image prepared_picture(const PictureRules& rules, const Bytes& file);

// Groups similar pictures, given by their rows, largest group first. Single pictures form their own
// groups. Pictures nearer than `threshold` are neighbours. Labels propagate among neighbours
// (Chinese whispers, Biemann 2006) in a deterministic order, so a single vector between two groups
// does not merge them.
std::vector<std::vector<int64_t>> group_alike(ThreadPool& pool, const VectorIndex& index,
                                              const Tensor& vectors, float threshold);

// A self-contained HTML page: sections of thumbnails with captions.
struct ThumbnailSection {
  std::string title;
  std::vector<std::filesystem::path> files;
  std::vector<std::string> captions;
};
std::string thumbnail_page(const std::string& title, const std::vector<ThumbnailSection>& sections,
                           int64_t side = 128);

}  // namespace artel::transfer
