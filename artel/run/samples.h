// Single samples from files of the user, made to look like those of a data set.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/data/augment.h"
#include "artel/data/dataset.h"

namespace artel {

// Rows of inputs for a network: one from a JPEG or PNG picture, which becomes an image as those of
// a folder do in training; one or several from an NPY file, images also with their channels last.
// `augment` (without chance) is applied to images. Throws if the file holds anything else.
Tensor read_samples(const std::filesystem::path& path, const data::SampleLayout& layout,
                    const data::Augmentation& augment);

// A row of tokens from a text or, with a second one, a pair, as labelled_text.h makes them. Throws
// if the data set's samples are no such texts.
Tensor text_sample(const std::string& text, const std::optional<std::string>& second,
                   const data::SampleLayout& layout);

}  // namespace artel
