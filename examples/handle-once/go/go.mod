module example.com/handle-once

go 1.19
