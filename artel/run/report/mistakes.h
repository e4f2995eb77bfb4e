// Draws the misclassified samples of a test.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"
#include "artel/data/images/image.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

// True if the samples are grey or colour pictures with one class each.
bool are_pictures(const data::SampleLayout& layout);

// A grid of pictures of equal size.
struct PictureSheet {
  data::Picture picture;
  int64_t columns = 1, tile_width = 0, tile_height = 0;
};
// Draws samples as the network sees them, in their original colours. Values beyond [0, 1] are
// rescaled, and large pictures scaled down.
PictureSheet draw_samples(const data::Dataset& set, const data::Augmentation& augment,
                          const std::vector<int64_t>& samples);

// The samples that were tested.
struct TestedSet {
  const data::Dataset& set;
  const data::Augmentation& augment;
  std::string part;  // "test" or "validation"
  int64_t size = 0;  // samples of the part, from which those of the set are drawn evenly
};

// Draws the samples of the mistakes in order.
PictureSheet draw_mistakes(const std::vector<Mistake>& mistakes, const TestedSet& tested);

// [{"sample", "label", "answer", "probability"}]: `sample` counts in the part from 0, `label` and
// `answer` are names of classes.
nlohmann::ordered_json to_json(const std::vector<Mistake>& mistakes, const TestedSet& tested);

// Replaces mistakes.json and mistakes.png in a run folder, or removes them without mistakes. The
// JSON is {"step", "part", "columns", "tile_width", "tile_height", "mistakes": as above}. Returns
// the sheet.
PictureSheet save_mistakes(const RunFolder& folder, const std::vector<Mistake>& mistakes,
                           const TestedSet& tested, int64_t step);

}  // namespace artel
