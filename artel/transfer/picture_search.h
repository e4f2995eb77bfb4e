// Finds pictures that show the same thing, such as the same person, by the numbers that a base
// computes for them.
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

// Pictures as vectors of length 1, except for bases that embed, whose distances have a meaning of
// their own.
struct PictureVectors {
  std::vector<std::filesystem::path> files;  // those that could be read
  Tensor vectors;                            // [files, width]
  std::vector<std::string> broken;           // why the others could not
};

struct EmbedOptions {
  int threads = 1;
  std::function<void(int64_t done, int64_t all)> progress = {};
};

// The order of the files is kept. Throws if none can be read, naming the first.
PictureVectors embed_pictures(const Base& base, const std::vector<std::filesystem::path>& files,
                              const EmbedOptions& options);

// How a base sees a picture: decoded, scaled, cut and normalised, [3, size, size].
data::Image prepared_picture(const PictureRules& rules, const Bytes& file);

// Pictures that are alike, the largest group first, each by its rows; pictures that resemble no
// other one are groups of their own. Two are neighbours if they are nearer than `threshold`; labels
// then spread among neighbours (chinese whispers, Biemann 2006), in an order that is a function of
// the rows, so that one vector between two people does not join them.
std::vector<std::vector<int64_t>> group_alike(ThreadPool& pool, const VectorIndex& index,
                                              const Tensor& vectors, float threshold);

// A page that needs no other file: sections of thumbnails with captions.
struct ThumbnailSection {
  std::string title;
  std::vector<std::filesystem::path> files;
  std::vector<std::string> captions;
};
std::string thumbnail_page(const std::string& title, const std::vector<ThumbnailSection>& sections,
                           int64_t side = 128);

}  // namespace artel::transfer
