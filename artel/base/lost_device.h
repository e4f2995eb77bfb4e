// The error of a device that was lost or hangs while it computed.
//
// The process is healthy, but it can no longer compute there. An elastic training continues with
// the other workers.
#pragma once

#include "artel/base/error.h"

namespace artel {

class LostDevice : public Error {
 public:
  using Error::Error;
};

}  // namespace artel
