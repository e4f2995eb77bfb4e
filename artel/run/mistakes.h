// The mistakes of a test as pictures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/data/image.h"
#include "artel/run/run_folder.h"
#include "artel/train/trainer.h"

namespace artel {

// Whether samples of a layout are grey or colour pictures with one class each.
bool are_pictures(const data::SampleLayout& layout);

// Pictures of equal size side by side, row by row.
struct PictureSheet {
  data::Picture picture;
  int64_t columns = 1, tile_width = 0, tile_height = 0;
};
// Samples as the network sees them, but with their own colours; values beyond [0, 1] are stretched
// to that. Large ones are scaled down.
PictureSheet draw_samples(const data::Dataset& set, const data::Augmentation& augment,
                          const std::vector<int64_t>& samples);

// What of which the mistakes are.
struct TestedSet {
  const data::Dataset& set;
  const data::Augmentation& augment;
  std::string part;  // "test" or "validation"
  int64_t size = 0;  // samples of that part, over which those of the set are spread evenly
};

// The samples of mistakes, in their order.
PictureSheet draw_mistakes(const std::vector<Mistake>& mistakes, const TestedSet& tested);

// [{"sample", "label", "answer", "probability"}]: `sample` counts in the part from 0, `label` and
// `answer` are names of classes.
nlohmann::ordered_json to_json(const std::vector<Mistake>& mistakes, const TestedSet& tested);

// Replaces mistakes.json and mistakes.png in the folder of a run; without mistakes it has neither.
// The JSON is {"step", "part", "columns", "tile_width", "tile_height", "mistakes": as above}.
// Returns the sheet.
PictureSheet save_mistakes(const RunFolder& folder, const std::vector<Mistake>& mistakes,
                           const TestedSet& tested, int64_t step);

}  // namespace artel
