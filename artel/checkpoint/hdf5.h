// Weights in HDF5, the format of Keras (.h5): a tree of groups whose leaves are data sets.
//
// Reads what the library of that name writes unless told otherwise: superblock 0 or 1, groups by
// symbol tables, and data sets of whole or floating-point numbers, low byte first, that lie in one
// piece. Attributes and types of other kinds are skipped.
#pragma once

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

bool is_hdf5(const Bytes& bytes);

// The data sets in the order of the groups, named by their path: "conv1/conv1/kernel:0". Tensors
// are views of the bytes where these are aligned. Throws an Error of kind corrupt for what leads
// out of the file, nests too deeply or repeats without end; of kind unsupported for newer ways of
// writing a group or a data set, and for data that is compressed.
NamedTensors parse_hdf5(const Bytes& bytes);

}  // namespace artel::checkpoint
