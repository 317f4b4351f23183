module autoimagemanager.io/examples/traffic

go 1.26.0
