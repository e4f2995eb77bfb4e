// Single samples from user files, converted to the form of a data set's samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"

namespace artel {

// Input rows for a network: one from a JPEG or PNG picture, prepared as in training; one or more
// from an NPY or idx file or, for several inputs, from the arrays x, x2, ... of an NPZ file. Images
// may have their channels last. Applies `augment` without random transforms to images. Throws for
// other files.
Tensor read_samples(const std::filesystem::path& path, const data::SampleLayout& layout,
                    const data::Augmentation& augment);

// The samples of an NPY, NPZ, or idx file, read on demand; null for other files.
data::DatasetPtr array_samples(const std::filesystem::path& path, const data::SampleLayout& layout);

// A range of samples as input rows, with the augmentation as above.
Tensor read_rows(const data::Dataset& samples, int64_t first, int64_t count,
                 const data::Augmentation& augment);

// A row of tokens for a text or a pair of texts, as in labelled_text.h. Throws if the data set does
// not consist of such texts.
Tensor text_sample(const std::string& text, const std::optional<std::string>& second,
                   const data::SampleLayout& layout);

}  // namespace artel
