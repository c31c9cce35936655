// Prints what Kubernetes says about the columns of its tables, for
// crates/homeostat-apiserver/data/columns.json.gz: by the internal type of the rows, and under the
// empty name what is said for every kind.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

type descriptions map[string]map[string]string

// TableHandler takes note of the columns that a function makes rows for.
func (all descriptions) TableHandler(columns []metav1.TableColumnDefinition, print interface{}) error {
	all.add(reflect.TypeOf(print).In(0).Elem(), columns)
	return nil
}

func (all descriptions) add(row reflect.Type, columns []metav1.TableColumnDefinition) {
	if strings.HasSuffix(row.Name(), "List") {
		return
	}
	own := map[string]string{}
	for _, column := range columns {
		if shared, found := all[""][column.Name]; !found || shared != column.Description {
			own[column.Name] = column.Description
		}
	}
	all[path.Base(row.PkgPath())+"."+row.Name()] = own
}

func main() {
	metadata := metav1.ObjectMeta{}.SwaggerDoc()
	all := descriptions{"": {
		"Name":       metadata["name"],
		"Age":        metadata["creationTimestamp"],
		"Created At": metadata["creationTimestamp"],
	}}
	internalversion.AddHandlers(all)
	// The aggregator makes its only table by itself.
	service := &apiregistration.APIService{}
	table, err := (&etcd.REST{}).ConvertToTable(context.Background(), service, nil)
	if err != nil {
		panic(err)
	}
	all.add(reflect.TypeOf(service).Elem(), table.ColumnDefinitions)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	if err := output.Encode(all); err != nil {
		panic(err)
	}
}
