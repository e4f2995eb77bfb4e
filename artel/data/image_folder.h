// A folder of pictures: each sub-folder is a class.
#pragma once

#include <filesystem>
#include <vector>

#include "artel/data/dataset.h"

namespace artel::data {

struct ImageFolderOptions {
  // Side of the square images; pictures are scaled so that they cover it and cut in the middle.
  // 0 means the size of the pictures or, if they differ, the median of their shorter sides, at
  // most 224, which the log says.
  int64_t size = 0;
  int channels = 3;  // 1 or 3
  // Pictures that cannot be decoded are left out, and the log counts and names them. All are
  // decoded once to know. Otherwise those that are cut off are refused at the start, and others
  // when they are read.
  bool skip_broken = false;
};

// Those inside a folder and its sub-folders, sorted by name. Hidden ones are skipped.
std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder);

// The pictures (.jpg, .jpeg, .png) below each sub-folder, classes and files in the order of their
// names. Hidden files and folders are skipped, and folders without pictures are not classes.
// Pictures are decoded whenever they are read, so the set may be larger than memory; with size 0
// all headers are read at the start.
DatasetPtr image_folder(const std::filesystem::path& folder,
                        const ImageFolderOptions& options = {});

// Sub-folders `train` and `test` (or `val`, `valid`, `validation`), each as above; classes and size
// are those of `train`, and the test part has no other classes.
Split image_folders(const std::filesystem::path& folder, const ImageFolderOptions& options = {});

}  // namespace artel::data
